/* A child by vfork(2), in the parent's memory, enters a sandbox and executes a program. The parent, which is in none, is recorded as before, and its
 * calls with bad addresses fail with EFAULT. The hazards: the agent takes the parent for the one in the sandbox; it reads what the host has given. */
// cflags: -O2
// record: seconds=4&hz=200&mode=cpu
// expect: every sample of burner has stack burner_main;work
// expect: samples >= 40
#include "burner.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

int main(void)
{
    static struct sock_filter filter[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    static struct sock_fprog program = {.len = 1, .filter = filter};
    host_begin();
    int status;
    pid_t child = vfork();
    if (child == 0) {
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
        execl("/bin/true", "true", NULL);
        _exit(127);
    }
    HOST_CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    HOST_CHECK(sigaltstack((stack_t *)16, NULL) == -1 && errno == EFAULT);
    HOST_CHECK(syscall(SYS_capset, 16, 16) == -1 && errno == EFAULT);
    pthread_t burner = burner_begin();
    host_say("ready");
    host_wait_for_end();
    pthread_join(burner, NULL);
    return host_end();
}
