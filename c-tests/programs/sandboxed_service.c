/* A program with one thread that puts itself under a filter for all that it does from then on, as file(1) and many parsers of
 * foreign data do: it may make children and ends by exit(3), and is not killed for calls that it did not make. */
// cflags: -O2
// record: seconds=3&hz=500
// expect: samples >= 1
#include "host.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/wait.h>

static volatile uint64_t sink;

int main(void)
{
#define ALLOW(call) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        ALLOW(SYS_read), ALLOW(SYS_write), ALLOW(SYS_exit_group), ALLOW(SYS_clone), ALLOW(SYS_wait4), ALLOW(SYS_set_robust_list),
        ALLOW(SYS_prctl), ALLOW(SYS_rseq), ALLOW(SYS_futex),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    };
    struct sock_fprog program = {.len = sizeof filter / sizeof *filter, .filter = filter};
    host_begin();
    HOST_CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    HOST_CHECK(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0);
    host_say("ready");
    /* Both computing and waiting, while it is recorded. */
    char byte = 0;
    for (int round = 0; round < 20; round++) {
        int status = 0;
        for (long i = 0; i < 1000000; i++)
            sink++;
        pid_t child = fork();
        HOST_CHECK(child >= 0);
        if (child == 0)
            _exit(3);
        HOST_CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 3);
    }
    HOST_CHECK(read(STDIN_FILENO, &byte, 1) == 0);
    return host_end();
}
