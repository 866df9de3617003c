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
#include "one_cpu.h"

static atomic_long sink[4];

int main(void)
{
    pthread_t burners[4];
    host_begin();
    for (int i = 0; i < 4; i++)
        burners[i] = one_cpu_thread("burner", burner_main, &sink[i]);
    for (int i = 0; i < 4; i++)
        wait_until_it_computes(&sink[i]);
    host_say("ready");
    host_wait_for_end();
    for (int i = 0; i < 4; i++)
        pthread_join(burners[i], NULL);
    return host_end();
}
