/* A thread that is sampled, and then blocks every signal while it computes, by a system call of its own: also those that
 * the C library keeps for itself, of which the agent's is one. The recording must count the CPU time of that while as
 * not sampled (`unsampled_cpu_ns`). The hazard: that time is given to the stacks that were seen before. */
// cflags: -O2
// record: samples=800&hz=200&mode=cpu
// expect: thread changing has stack changing_main;unmasked
// expect: stats unsampled_cpu_ns >= 100000000
#include "host.h"

static void mask_all(int how)
{
    const uint64_t all = UINT64_MAX;
    HOST_CHECK(syscall(SYS_rt_sigprocmask, how, &all, NULL, sizeof all) == 0);
}
static void compute_ms(long ms)
{
    uint64_t start = host_thread_cpu_ns();
    while (host_thread_cpu_ns() - start < (uint64_t)ms * 1000000)
        ;
}
FRAME static void unmasked(void)
{
    compute_ms(50);
    NOT_A_TAIL_CALL();
}
FRAME static void masked(void)
{
    mask_all(SIG_BLOCK);
    compute_ms(250);
    mask_all(SIG_UNBLOCK);
}
FRAME static void *changing_main(void *argument)
{
    host_arrive();
    while (!atomic_load(&host_ending)) {
        unmasked();
        masked();
    }
    return argument;
}

int main(void)
{
    host_begin();
    pthread_t changing = host_thread("changing", changing_main, NULL);
    host_wait_until_arrived(1);
    host_say("ready");
    host_wait_for_end();
    pthread_join(changing, NULL);
    return host_end();
}
