/* Threads that begin while the program is recorded, block all signals, and receive them by sigtimedwait(2). They compute
 * between two waits. The host must receive those signals only that were sent to it: here none. The hazard: while a
 * thread waits there the kernel shows its mask without the awaited signals, and the thread is taken for one that may be
 * signalled. */
// cflags: -O2
// record: seconds=4&hz=500&mode=cpu
// expect: samples >= 5
#include "host.h"
#include <signal.h>

static sigset_t all;

static void *receiver_main(void *argument)
{
    pthread_sigmask(SIG_SETMASK, &all, NULL);
    for (int turn = 0; turn < 40; turn++) {
        const struct timespec moment = {0, 10000000};
        for (volatile int i = 0; i < 2000000; i++) {}
        HOST_CHECK(sigtimedwait(&all, NULL, &moment) < 0 || !"a signal came that nobody sent");
    }
    return argument;
}

FRAME static void *spawner_main(void *argument)
{
    while (!atomic_load(&host_ending)) {
        pthread_t receiver = host_thread("receiver", receiver_main, NULL);
        for (volatile int i = 0; i < 20000000; i++) {}
        pthread_join(receiver, NULL);
    }
    return argument;
}

int main(void)
{
    host_begin();
    sigfillset(&all);
    sigdelset(&all, SIGALRM);
    pthread_t spawner = host_thread("spawner", spawner_main, NULL);
    host_say("ready");
    host_wait_for_end();
    pthread_join(spawner, NULL);
    return host_end();
}
