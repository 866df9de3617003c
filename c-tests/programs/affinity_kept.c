/* A thread computes. Another one starts threads and children, each of which checks the CPUs on which it may run. The
 * host must see its own CPU set in all of them. The hazard: the sampler pins itself to one CPU for `source=preempt`; a
 * pin of a thread of the host's would be inherited by its threads and children. */
// cflags: -O2
#include "burner.h"
#include <sched.h>
#include <sys/wait.h>

static cpu_set_t original;

static bool is_as_it_was(void)
{
    cpu_set_t cpus;
    return sched_getaffinity(0, sizeof cpus, &cpus) == 0 && CPU_EQUAL(&cpus, &original);
}
static void *new_main(void *argument)
{
    HOST_CHECK(is_as_it_was());
    return argument;
}
static void *starter_main(void *argument)
{
    const struct timespec moment = {0, 2000000};
    while (!atomic_load(&host_ending)) {
        pthread_join(host_thread("new", new_main, NULL), NULL);
        pid_t child = fork();
        if (child == 0)
            _exit(is_as_it_was() ? 0 : 1);
        int status;
        HOST_CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
        HOST_CHECK(is_as_it_was());
        nanosleep(&moment, NULL);
    }
    return argument;
}

int main(void)
{
    host_begin();
    HOST_CHECK(sched_getaffinity(0, sizeof original, &original) == 0);
    pthread_t burner = burner_begin();
    pthread_t starter = host_thread("starter", starter_main, NULL);
    host_say("ready");
    host_wait_for_end();
    pthread_join(burner, NULL);
    pthread_join(starter, NULL);
    HOST_CHECK(is_as_it_was());
    return host_end();
}
