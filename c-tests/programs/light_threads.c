/* One processor, which a thread has half of the time and 8 with low priority the rest: a profile shows each by its CPU time,
 * whether it weighs nanoseconds or counts samples. */
// cflags: -O2
// record: samples=400&hz=200&mode=cpu&format=folded
// expect: share of * with stack light_main >= 0.05
// expect: share of * with stack light_main <= 0.7
// record: samples=400&hz=200&mode=cpu&format=folded&weight=samples
// expect: share of * with stack light_main >= 0.05
// expect: share of * with stack light_main <= 0.7
#include "host.h"

#include <sched.h>

enum { LIGHT = 8 };
static atomic_long sink;

FRAME static void *heavy_main(void *argument)
{
    while (!atomic_load(&host_ending))
        atomic_fetch_add(&sink, 1);
    return argument;
}
FRAME static void *light_main(void *argument)
{
    HOST_CHECK(nice(10) != -1); // of this thread
    host_arrive();
    while (!atomic_load(&host_ending))
        atomic_fetch_add(&sink, 1);
    return argument;
}

int main(void)
{
    pthread_t threads[LIGHT + 1];
    cpu_set_t one;
    host_begin();
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    HOST_CHECK(sched_setaffinity(0, sizeof one, &one) == 0);
    for (int i = 0; i < LIGHT; i++)
        threads[i] = host_thread("light", light_main, NULL);
    while (atomic_load(&host_arrived) < LIGHT)
        sched_yield();
    threads[LIGHT] = host_thread("heavy", heavy_main, NULL);
    host_say("ready");
    host_wait_for_end();
    for (int i = 0; i <= LIGHT; i++)
        pthread_join(threads[i], NULL);
    return host_end();
}
