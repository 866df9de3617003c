/* A host with a profiler of its own, as gperftools is one: SIGPROF every millisecond of CPU time (setitimer(2)) and a handler that
 * unwinds its stack with the C library, beside a timer of its own with a real-time signal. Both profilers work, neither
 * gets a signal of the other. */
// cflags: -O2 -rdynamic
// record: samples=1000&hz=1000
// expect: every sample of worker has stack worker_main
// expect: share of worker with stack worker_main;work >= 0.5
#include "host.h"
#include <execinfo.h>
#include <sys/time.h>

static volatile uint64_t sink;
static atomic_long ticks, from_elsewhere, shallow, timer_ticks;

static void on_profile(int number, siginfo_t *info, void *context)
{
    (void)number;
    (void)context;
    void *frames[16];
    int saved = errno;
    atomic_fetch_add(&ticks, 1);
    atomic_fetch_add(&from_elsewhere, info->si_code == SI_QUEUE);
    atomic_fetch_add(&shallow, backtrace(frames, 16) < 3);
    errno = saved;
}
static void on_timer(int number, siginfo_t *info, void *context)
{
    (void)number;
    (void)context;
    atomic_fetch_add(&timer_ticks, 1);
    atomic_fetch_add(&from_elsewhere, info->si_code != SI_TIMER);
}
FRAME static void work(void)
{
    for (long i = 0; i < 100000; i++)
        sink++;
}
FRAME static void *worker_main(void *argument)
{
    host_arrive();
    while (!atomic_load(&host_ending))
        work();
    return argument;
}

int main(void)
{
    host_begin();
    void *frames[4];
    backtrace(frames, 4); /* loads libgcc before a handler needs it */
    struct sigaction action = {.sa_sigaction = on_profile, .sa_flags = SA_SIGINFO | SA_RESTART};
    HOST_CHECK(sigaction(SIGPROF, &action, NULL) == 0);
    action.sa_sigaction = on_timer;
    HOST_CHECK(sigaction(SIGRTMIN, &action, NULL) == 0);
    struct itimerval each = {{0, 1000}, {0, 1000}};
    HOST_CHECK(setitimer(ITIMER_PROF, &each, NULL) == 0);
    timer_t timer;
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN};
    struct itimerspec often = {{0, 1000000}, {0, 1000000}};
    HOST_CHECK(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0 && timer_settime(timer, 0, &often, NULL) == 0);
    pthread_t worker = host_thread("worker", worker_main, NULL);
    host_wait_until_arrived(1);
    host_say("ready");
    host_wait_for_end();
    struct itimerval none = {{0, 0}, {0, 0}};
    HOST_CHECK(setitimer(ITIMER_PROF, &none, NULL) == 0 && timer_delete(timer) == 0);
    pthread_join(worker, NULL);
    host_say("%ld ticks, %ld of the timer, %ld from elsewhere, %ld shallow", atomic_load(&ticks), atomic_load(&timer_ticks),
             atomic_load(&from_elsewhere), atomic_load(&shallow));
    HOST_CHECK(atomic_load(&from_elsewhere) == 0 && atomic_load(&shallow) == 0);
    return host_end();
}
