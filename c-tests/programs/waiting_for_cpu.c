/* Four threads that never sleep share one processor: three of them always wait for it. A sampler that takes every
 * thread that is not blocked for a running one would show four times the CPU time there is. */
// cflags: -O2
// record: samples=200&hz=200
// expect: every tick is accounted for
// expect: every sample of burner has stack burner_main;burn
// expect: share of burner with stack burn;[waiting* >= 0.6
// expect: share of burner with stack burn;[waiting* <= 0.9999
// expect: stats cpu_wait_ns >= 500000000
// expect: thread main has stack [blocked*
// record: samples=100&hz=200&states=false&format=folded
// expect: share of burner with stack [waiting* <= 0
// record: samples=100&hz=200&mode=cpu&format=folded
// expect: share of burner with stack [waiting* <= 0
#include "host.h"

#include <sched.h>

static atomic_long sink[4];

FRAME static void burn(atomic_long *count)
{
    while (!atomic_load(&host_ending))
        atomic_fetch_add(count, 1);
}
FRAME static void *burner_main(void *argument)
{
    burn(argument);
    NOT_A_TAIL_CALL();
    return argument;
}

int main(void)
{
    pthread_t burners[4];
    cpu_set_t before, one;
    host_begin();
    HOST_CHECK(sched_getaffinity(0, sizeof before, &before) == 0);
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    HOST_CHECK(sched_setaffinity(0, sizeof one, &one) == 0); /* what is started now inherits it */
    for (int i = 0; i < 4; i++)
        burners[i] = host_thread("burner", burner_main, &sink[i]);
    HOST_CHECK(sched_setaffinity(0, sizeof before, &before) == 0);
    for (int i = 0; i < 4; i++)
        while (atomic_load(&sink[i]) == 0)
            sched_yield();
    host_say("ready");
    host_wait_for_end();
    for (int i = 0; i < 4; i++)
        pthread_join(burners[i], NULL);
    return host_end();
}
