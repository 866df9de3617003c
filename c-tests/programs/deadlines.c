/* Threads that share a processor, and whose functions end at a time: what is preempted in one of them is nearly over as it runs again. A sampler that
 * hits only the beginnings or ends of turns shows the longer one too seldom or too often. By their own clocks it has 60 to 75 % of the CPU time. */
// cflags: -O2
// record: seconds=4&hz=500&mode=cpu&source=preempt
// expect: samples >= 100
// expect: share of first with stack waiter_main;longer >= 0.5
// expect: share of first with stack waiter_main;shorter >= 0.12
#include "one_cpu.h"

static uint64_t now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}
/* Waits half to one and a half times as long. */
static void wait_for(unsigned us, unsigned *seed)
{
    uint64_t end = now_ns() + (us / 2 + (unsigned)rand_r(seed) % us) * 1000ull;
    while (now_ns() < end) {
    }
}
FRAME static void longer(unsigned *seed)
{
    wait_for(3000, seed);
    NOT_A_TAIL_CALL();
}
FRAME static void shorter(unsigned *seed)
{
    wait_for(1000, seed);
    NOT_A_TAIL_CALL();
}
FRAME static void *waiter_main(void *argument)
{
    atomic_long *count = argument;
    unsigned seed = (unsigned)now_ns();
    while (!atomic_load(&host_ending)) {
        longer(&seed);
        shorter(&seed);
        atomic_fetch_add(count, 1);
    }
    return argument;
}

int main(void)
{
    static const char *const names[] = {"first", "second", "third"};
    static atomic_long turns[3];
    pthread_t waiters[3];
    host_begin();
    for (int i = 0; i < 3; i++)
        waiters[i] = one_cpu_thread(names[i], waiter_main, &turns[i]);
    wait_until_it_computes(&turns[0]);
    host_say("ready");
    host_wait_for_end();
    for (int i = 0; i < 3; i++)
        pthread_join(waiters[i], NULL);
    return host_end();
}
