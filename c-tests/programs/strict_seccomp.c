/* Threads that may make a few system calls only and are killed for others (seccomp(2)): one in strict mode, one whose
 * filter does not allow the return from a signal handler. They compute while they are recorded. The host must see both
 * threads reach their ends. The recording must count their time as not sampled (`unsampled_cpu_ns`). The hazard: the
 * agent signals such a thread. */
// cflags: -O2
// record: samples=500&hz=500
// expect: every sample of burner has stack burner_main
// expect: stats unsampled_cpu_ns >= 1
#include "burner.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>

static atomic_int computed;

FRAME static void compute(int depth)
{
    if (depth > 0)
        compute(depth - 1);
    else
        while (!atomic_load(&host_ending))
            sink++;
    NOT_A_TAIL_CALL();
}
/* A thread that can call nothing but exit(2) cannot return from its function. */
static void end_thread(void)
{
    atomic_fetch_add(&computed, 1);
    syscall(SYS_exit, 0);
}
FRAME static void *strict_main(void *argument)
{
    host_arrive();
    HOST_CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) == 0);
    compute(20);
    end_thread();
    return argument;
}
FRAME static void *filtered_main(void *argument)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    };
    struct sock_fprog program = {.len = sizeof filter / sizeof *filter, .filter = filter};
    host_arrive();
    HOST_CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    HOST_CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
    compute(20);
    end_thread();
    return argument;
}

int main(void)
{
    host_begin();
    pthread_t burner = burner_begin();
    host_thread("strict", strict_main, NULL);
    host_thread("filtered", filtered_main, NULL);
    host_wait_until_arrived(2);
    host_say("ready");
    host_wait_for_end();
    pthread_join(burner, NULL);
    const struct timespec pause = {0, 1000000};
    for (int i = 0; i < 10000 && atomic_load(&computed) < 2; i++)
        nanosleep(&pause, NULL);
    HOST_CHECK(atomic_load(&computed) == 2);
    return host_end();
}
