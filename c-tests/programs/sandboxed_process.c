/* A process that puts all its threads, also those that it did not start, under a filter that kills for any call but the
 * few that the process makes itself (seccomp(2), SECCOMP_FILTER_FLAG_TSYNC). The host must live and end as without a
 * profiler, also when a client requests a recording. The hazard: a thread of the agent's makes another call. */
// cflags: -O2
#include "burner.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>

static void enter_sandbox(void)
{
#define ALLOW(call) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        ALLOW(SYS_read), ALLOW(SYS_write), ALLOW(SYS_futex), ALLOW(SYS_exit), ALLOW(SYS_exit_group), ALLOW(SYS_madvise),
        ALLOW(SYS_munmap), ALLOW(SYS_rt_sigprocmask), ALLOW(SYS_rt_sigreturn), ALLOW(SYS_rseq), ALLOW(SYS_set_robust_list),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    };
    struct sock_fprog program = {.len = sizeof filter / sizeof *filter, .filter = filter};
    HOST_CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    HOST_CHECK(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) == 0);
}

int main(void)
{
    char line[64];
    host_begin();
    pthread_t burner = burner_begin();
    host_say("ready");
    bool with_handlers = false;
    while (host_line(line, sizeof line)) {
        with_handlers = strcmp(line, "enter and exit") == 0;
        enter_sandbox();
        host_say("sandboxed");
    }
    atomic_store(&host_ending, true);
    pthread_join(burner, NULL);
    host_say("ok");
    if (with_handlers)
        exit(0);
    _exit(0);
}
