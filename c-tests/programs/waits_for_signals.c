/* A daemon that blocks all signals in all threads and receives them by sigtimedwait(2). It computes between two waits.
 * The host must receive those signals only that were sent to it: here none. The hazard: the agent's signal comes while
 * the thread computes, stays pending, and is received by the next wait. */
// cflags: -O2
// record: samples=500&hz=500
// expect: samples >= 100
#include "host.h"
#include <signal.h>

static sigset_t all;

static void *receiver_main(void *argument)
{
    int number;
    /* Busy between two waits: that is when it is sampled. */
    while (!atomic_load(&host_ending)) {
        const struct timespec moment = {0, 2000000};
        for (volatile int i = 0; i < 1000000; i++) {}
        number = sigtimedwait(&all, NULL, &moment);
        HOST_CHECK(number < 0 || !"a signal came that nobody sent");
    }
    return argument;
}

int main(void)
{
    host_begin();
    sigfillset(&all);
    sigdelset(&all, SIGALRM);
    pthread_sigmask(SIG_SETMASK, &all, NULL);
    host_thread("receiver", receiver_main, NULL);
    host_say("ready");
    host_wait_for_end();
    return host_end();
}
