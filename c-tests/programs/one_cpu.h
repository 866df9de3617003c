/* Threads that compute on one and the same processor until their program is to end. */
#ifndef SWIPR_C_TESTS_ONE_CPU_H
#define SWIPR_C_TESTS_ONE_CPU_H

#include "host.h"

#include <sched.h>

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
/* Starts one on the processor of the first; it may have to wait for it. */
static pthread_t one_cpu_thread(const char *name, void *(*thread_main)(void *), atomic_long *count)
{
    static int cpu = -1;
    cpu_set_t before, one;
    if (cpu < 0)
        cpu = sched_getcpu();
    HOST_CHECK(sched_getaffinity(0, sizeof before, &before) == 0);
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    HOST_CHECK(sched_setaffinity(0, sizeof one, &one) == 0); /* what is started now inherits it */
    pthread_t thread = host_thread(name, thread_main, count);
    HOST_CHECK(sched_setaffinity(0, sizeof before, &before) == 0);
    return thread;
}
static void wait_until_it_computes(atomic_long *count)
{
    while (atomic_load(count) == 0)
        sched_yield();
}

#endif
