/* A thread that waits in select(2) for a signal. The handler works for 3 ms with all signals blocked, and then
 * uninstalls itself. The host must see each wait end with EINTR. The hazard: the agent's signal comes while the
 * handler works, is delivered when the handler returns, in a program that has no handler any more, and the wait does
 * not end. */
// cflags: -O2
// record: samples=6000&hz=2000
// expect: samples >= 6000
#include "host.h"

#include <sys/select.h>

static atomic_bool armed;
static atomic_ulong rounds;
static pthread_t waiter;
static char waiter_id[24];

static void compute_for(long milliseconds)
{
    struct timespec begin, now;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    do
        clock_gettime(CLOCK_MONOTONIC, &now);
    while ((now.tv_sec - begin.tv_sec) * 1000 + (now.tv_nsec - begin.tv_nsec) / 1000000 < milliseconds);
}
static void once(int number)
{
    compute_for(3);
    signal(number, SIG_DFL);
}
static void arm(void)
{
    struct sigaction action = {.sa_handler = once};
    sigfillset(&action.sa_mask);
    HOST_CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
}
FRAME static void *waits(void *argument)
{
    snprintf(waiter_id, sizeof waiter_id, "%ld", (long)syscall(SYS_gettid));
    host_arrive();
    for (;;) {
        atomic_store(&armed, true);
        HOST_CHECK(select(0, NULL, NULL, NULL, NULL) == -1 && errno == EINTR && !atomic_load(&armed));
        arm();
        atomic_fetch_add(&rounds, 1);
    }
    return argument;
}
FRAME static void *sends(void *argument)
{
    const struct timespec moment = {0, 2000000};
    for (int waiting = 0;; waiting++) {
        nanosleep(&moment, NULL);
        if (!atomic_load(&armed) || host_thread_state(waiter_id) != 'S')
            waiting = 0;
        /* Not when the wait has just begun: the signal would come before it, and nothing would end it. */
        if (waiting == 2) {
            waiting = 0;
            atomic_store(&armed, false);
            pthread_kill(waiter, SIGUSR1);
        }
    }
    return argument;
}

int main(void)
{
    host_begin();
    arm();
    waiter = host_thread("waits", waits, NULL);
    host_wait_until_arrived(1);
    host_thread("sends", sends, NULL);
    host_say("ready");
    char line[8];
    while (host_line(line, sizeof line))
        NOT_A_TAIL_CALL();
    const struct timespec moment = {0, 1000000};
    unsigned long before = atomic_load(&rounds);
    for (int i = 0; i < 10000 && atomic_load(&rounds) < before + 2; i++)
        nanosleep(&moment, NULL);
    HOST_CHECK(atomic_load(&rounds) >= before + 2);
    return host_end();
}
