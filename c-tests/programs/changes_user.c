/* A program that changes its group again and again while it is recorded. The C library does that in each thread, by a
 * signal of its own, for whose handlers it waits: the very signal that the agent's timers raise. All must get it, also
 * threads that block signals. The hazard: the agent keeps it from the C library, and the call never returns. */
// cflags: -O2
// record: seconds=1&hz=500&mode=cpu
// expect: thread busy has stack busy_main;work
// expect: samples >= 20
#include "host.h"

static atomic_long changes;

FRAME static void work(void)
{
    for (volatile int i = 0; i < 100000; i++) {}
}
static void *busy_main(void *blocks)
{
    sigset_t all;
    sigfillset(&all);
    if (blocks)
        pthread_sigmask(SIG_BLOCK, &all, NULL);
    while (!atomic_load(&host_ending))
        work();
    return NULL;
}
static void *changing_main(void *argument)
{
    while (!atomic_load(&host_ending)) {
        HOST_CHECK(setgid(getgid()) == 0);
        atomic_fetch_add(&changes, 1);
    }
    return argument;
}

int main(void)
{
    pthread_t threads[3];
    host_begin();
    for (int i = 0; i < 2; i++)
        threads[i] = host_thread("busy", busy_main, i == 0 ? &changes : NULL);
    threads[2] = host_thread("changing", changing_main, NULL);
    host_say("ready");
    host_wait_for_end();
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    HOST_CHECK(atomic_load(&changes) > 0);
    return host_end();
}
