/* Functions with split stacks: each looks whether its part of the stack has room for it, and gets another part where it
 * has none. What is left of a part may have no room for the frame of a signal, and the process would be killed. The host
 * must live. Its running time is counted as not sampled. The hazard: the agent signals a thread there. */
// cflags: -O1 -fsplit-stack
// record: seconds=3&hz=1000
// expect: thread napping has stack napping_main;nap
// expect: stats unsampled_cpu_ns >= 1
#include "host.h"

static volatile uint64_t sink;

FRAME static void deep(int depth)
{
    volatile char bytes[100];
    bytes[depth % 100] = 1;
    if (depth > 0)
        deep(depth - 1);
    sink += (uint64_t)bytes[0];
}
FRAME static void nap(void)
{
    const struct timespec time = {0, 3000000};
    nanosleep(&time, NULL);
    NOT_A_TAIL_CALL();
}
FRAME static void *plain_main(void *argument)
{
    host_arrive();
    while (!atomic_load(&host_ending))
        deep((int)(sink % 700));
    return argument;
}
FRAME static void *napping_main(void *argument)
{
    host_arrive();
    while (!atomic_load(&host_ending))
        nap();
    return argument;
}
FRAME static void *short_main(void *argument)
{
    for (int i = 0; i < 1000; i++)
        deep((int)(sink % 700));
    return argument;
}
/* Threads that begin while the recording runs. */
FRAME static void *starter_main(void *argument)
{
    host_arrive();
    while (!atomic_load(&host_ending))
        pthread_join(host_thread("short", short_main, NULL), NULL);
    return argument;
}

int main(void)
{
    host_begin();
    pthread_t threads[] = {
        host_thread("plain", plain_main, NULL),
        host_thread("napping", napping_main, NULL),
        host_thread("starter", starter_main, NULL),
    };
    host_wait_until_arrived(3);
    host_say("ready");
    host_wait_for_end();
    for (size_t i = 0; i < sizeof threads / sizeof *threads; i++)
        pthread_join(threads[i], NULL);
    return host_end();
}
