/* A thread that computes for 6 ms, which is longer than the kernel's tick, and pauses for 30 to 90 ms: it has no rhythm. */
// cflags: -O2
#include "host.h"

static volatile uint64_t sink;

FRAME static void burst(void)
{
    uint64_t until = host_thread_cpu_ns() + 6000000;
    while (host_thread_cpu_ns() < until)
        for (int i = 0; i < 1000; i++)
            sink += (uint64_t)i;
}
FRAME static void *bursts_main(void *argument)
{
    unsigned seed = 1;
    while (!atomic_load(&host_ending)) {
        burst();
        nanosleep(&(struct timespec){0, 30000000 + rand_r(&seed) % 60000000}, NULL);
    }
    return argument;
}
int main(void)
{
    host_begin();
    pthread_t bursts = host_thread("bursts", bursts_main, NULL);
    host_say("ready");
    host_wait_for_end();
    pthread_join(bursts, NULL);
    return host_end();
}
