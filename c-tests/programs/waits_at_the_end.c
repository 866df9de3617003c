/* A thread of the lowest priority that never sleeps, beside one of usual priority on the same processor: it waits for a
 * tenth of a second and more at a time. The kernel counts a wait when it is over. The hazard: the wait in which a
 * recording ends is taken for a blocked thread's time. */
// cflags: -O2
#include "host.h"

#include <sched.h>
#include <sys/resource.h>

static atomic_long sink[2];

FRAME static void burn(atomic_long *count)
{
    while (!atomic_load(&host_ending))
        atomic_fetch_add(count, 1);
}
FRAME static void *patient_main(void *argument)
{
    HOST_CHECK(setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), 19) == 0);
    burn(argument);
    NOT_A_TAIL_CALL();
    return argument;
}
FRAME static void *burner_main(void *argument)
{
    burn(argument);
    NOT_A_TAIL_CALL();
    return argument;
}

int main(void)
{
    cpu_set_t before, one;
    host_begin();
    HOST_CHECK(sched_getaffinity(0, sizeof before, &before) == 0);
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    HOST_CHECK(sched_setaffinity(0, sizeof one, &one) == 0); /* what is started now inherits it */
    pthread_t patient = host_thread("patient", patient_main, &sink[0]);
    HOST_CHECK(sched_setaffinity(0, sizeof before, &before) == 0);
    while (atomic_load(&sink[0]) == 0)
        sched_yield();
    HOST_CHECK(sched_setaffinity(0, sizeof one, &one) == 0);
    pthread_t burner = host_thread("burner", burner_main, &sink[1]);
    HOST_CHECK(sched_setaffinity(0, sizeof before, &before) == 0);
    while (atomic_load(&sink[1]) == 0)
        sched_yield();
    host_say("ready");
    host_wait_for_end();
    pthread_join(burner, NULL);
    pthread_join(patient, NULL);
    return host_end();
}
