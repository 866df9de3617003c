/* A signal handler of the host's burns CPU. A sample taken there must continue through the kernel's signal frame to the
 * code that was interrupted, and to main. The hazard: the pc of that code is taken for a return address; it is the
 * interrupted instruction. */
// cflags: -O2 -fomit-frame-pointer
// record: samples=500&hz=500
// expect: every sample of main has stack main;outer_work;leaf_work;on_signal;handler_work
// expect: every sample of main is complete
#include "host.h"

static volatile uint64_t sink;
static pthread_t main_thread;

FRAME static void handler_work(void)
{
    uint64_t rounds = 0;
    while (!atomic_load(&host_ending)) {
        sink++;
        if (++rounds == 1000)
            host_say("ready");
    }
}
FRAME static void on_signal(int number)
{
    (void)number;
    handler_work();
    NOT_A_TAIL_CALL();
}
FRAME static void leaf_work(void)
{
    atomic_fetch_add(&host_arrived, 1);
    while (!atomic_load(&host_ending))
        sink++;
}
FRAME static void outer_work(void)
{
    leaf_work();
    NOT_A_TAIL_CALL();
}
static void *interrupter_main(void *argument)
{
    host_wait_until_arrived(1);
    pthread_kill(main_thread, SIGUSR1);
    host_wait_for_end();
    return argument;
}

int main(void)
{
    struct sigaction action = {.sa_handler = on_signal};
    host_begin();
    main_thread = pthread_self();
    HOST_CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
    pthread_t interrupter = host_thread("interrupter", interrupter_main, NULL);
    outer_work();
    pthread_join(interrupter, NULL);
    return host_end();
}
