/* Threads that are started with every signal blocked, as liblzma's workers are. Where the library is preloaded,
 * `worker` must be recorded like other threads. `waiter` waits for all signals, and the host must see it receive none:
 * no thread sends any. The hazard: the agent's signal is received by such a wait. */
// cflags: -O2
// record: samples=300&hz=200&mode=cpu
// expect: thread worker has stack worker_main;work
// expect: share of worker with stack work >= 0.9
#include "host.h"
#include <signal.h>

static volatile uint64_t sink;
static atomic_int unasked;

FRAME static void work(void)
{
    while (!atomic_load(&host_ending))
        sink++;
}
FRAME static void *worker_main(void *argument)
{
    work();
    NOT_A_TAIL_CALL();
    return argument;
}
FRAME static void *waiter_main(void *argument)
{
    sigset_t all;
    const struct timespec moment = {0, 500000};
    sigfillset(&all);
    while (!atomic_load(&host_ending)) {
        for (int i = 0; i < 20000; i++)
            sink++;
        if (sigtimedwait(&all, NULL, &moment) > 0)
            atomic_fetch_add(&unasked, 1);
    }
    return argument;
}

int main(void)
{
    sigset_t all, before;
    host_begin();
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_t worker = host_thread("worker", worker_main, NULL);
    pthread_t waiter = host_thread("waiter", waiter_main, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    host_say("ready");
    host_wait_for_end();
    pthread_join(worker, NULL);
    pthread_join(waiter, NULL);
    HOST_CHECK(atomic_load(&unasked) == 0);
    return host_end();
}
