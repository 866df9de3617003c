/* The first thread ends and others continue to run. From then on the kernel's files of the process, which are those of
 * its first thread, are empty; those of the other threads are not. The recording must show complete stacks with names.
 * The hazard: the agent reads the first thread's files. */
// cflags: -O2 -Wl,--build-id=none
// record: samples=200&hz=200
// expect: every sample of burner has stack burner_main;burn
// expect: every sample of burner is complete
// expect: every sample of waiter is complete
// expect: every tick is accounted for
#include "host.h"

static volatile uint64_t sink;

FRAME static void burn(void)
{
    while (!atomic_load(&host_ending))
        sink++;
}
FRAME static void *burner_main(void *argument)
{
    burn();
    NOT_A_TAIL_CALL();
    return argument;
}
FRAME static void *waiter_main(void *argument)
{
    const struct timespec pause = {0, 1000000};
    char tid[32];
    snprintf(tid, sizeof tid, "%d", (int)getpid());
    while (host_thread_state(tid) != 'Z' || sink == 0)
        nanosleep(&pause, NULL);
    host_say("ready");
    host_wait_for_end();
    pthread_join(*(pthread_t *)argument, NULL);
    exit(host_end());
}

int main(void)
{
    static pthread_t burner;
    host_begin();
    burner = host_thread("burner", burner_main, NULL);
    host_thread("waiter", waiter_main, &burner);
    pthread_exit(NULL);
}
