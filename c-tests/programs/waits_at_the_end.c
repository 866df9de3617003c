/* A thread of the lowest priority that never sleeps, beside one of usual priority on the same processor: it waits for a
 * tenth of a second and more at a time. The kernel counts a wait when it is over. The hazard: the wait in which a
 * recording ends is taken for a blocked thread's time. */
// cflags: -O2
#include "one_cpu.h"
#include <sys/resource.h>

static atomic_long sink[2];

FRAME static void *patient_main(void *argument)
{
    HOST_CHECK(setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), 19) == 0);
    burn(argument);
    NOT_A_TAIL_CALL();
    return argument;
}

int main(void)
{
    host_begin();
    pthread_t patient = one_cpu_thread("patient", patient_main, &sink[0]);
    wait_until_it_computes(&sink[0]);
    pthread_t burner = one_cpu_thread("burner", burner_main, &sink[1]);
    wait_until_it_computes(&sink[1]);
    host_say("ready");
    host_wait_for_end();
    pthread_join(burner, NULL);
    pthread_join(patient, NULL);
    return host_end();
}
