/* A container whose filter refuses sched_setaffinity(2), as a cpuset refuses CPUs that are not in it. The program makes
 * the filter and executes itself under it, so that the agent's threads have it, too. The recording must continue:
 * running time is shown as `[not sampled: it cannot be preempted]`, and threads that sleep have their stacks. The
 * hazard: `source=preempt` cannot go to a thread's CPU. */
// cflags: -O2
// record: seconds=1&hz=200&mode=wall&source=preempt
// expect: every tick is accounted for
// expect: every sample of sleeper has stack sleeper_main;sleep_long
// expect: share of burner with stack [not*it*cannot*be*preempted] >= 0.9
// record: seconds=3&hz=200&mode=cpu&source=preempt
// expect: share of burner with stack [not*it*cannot*be*preempted] >= 0.9
// expect: stats unsampled_cpu_ns >= 100000000
// record: seconds=1&hz=200&mode=cpu
// expect: every sample of burner has stack burner_main;work
#include "burner.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <sys/prctl.h>

FRAME static void sleep_long(void)
{
    const struct timespec hour = {3600, 0};
    host_arrive();
    nanosleep(&hour, NULL);
    HOST_CHECK(!"a sleeping thread was woken");
}
FRAME static void *sleeper_main(void *argument)
{
    sleep_long();
    NOT_A_TAIL_CALL();
    return argument;
}
static void execute_under_filter(char **arguments)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_sched_setaffinity, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = sizeof filter / sizeof *filter, .filter = filter};
    HOST_CHECK(setenv("UNDER_FILTER", "1", 1) == 0);
    HOST_CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    HOST_CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
    execv("/proc/self/exe", arguments);
    HOST_CHECK(!"the program could not execute itself");
}

int main(int count, char **arguments)
{
    cpu_set_t cpus;
    (void)count;
    host_begin();
    if (getenv("UNDER_FILTER") == NULL)
        execute_under_filter(arguments);
    HOST_CHECK(sched_getaffinity(0, sizeof cpus, &cpus) == 0);
    HOST_CHECK(sched_setaffinity(0, sizeof cpus, &cpus) == -1 && errno == EPERM);
    host_thread("sleeper", sleeper_main, NULL);
    host_wait_until_blocked(1);
    pthread_t burner = burner_begin();
    host_say("ready");
    host_wait_for_end();
    pthread_join(burner, NULL);
    return host_end();
}
