/* A child by clone(2) in the parent's memory, whose thread pointer leads to zeros, makes calls of the C library that need no thread-local data unless they
 * fail, as Chromium's sandbox does. The hazards: the agent's own functions of these names read thread-local variables; what the child does is noted of the
 * parent, which is recorded as before. */
// cflags: -O2
// record: seconds=4&hz=200&mode=cpu
// expect: every sample of burner has stack burner_main;work
// expect: samples >= 40
#include "burner.h"
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static void set_limit(void)
{
    struct rlimit limit;
    getrlimit(RLIMIT_NPROC, &limit);
    setrlimit(RLIMIT_NPROC, &limit);
}

static void set_stack(void)
{
    stack_t none = {.ss_flags = SS_DISABLE};
    sigaltstack(&none, NULL);
}

static void forbid_calls(void)
{
    prctl(PR_SET_KEEPCAPS, 0, 0, 0, 0);
    syscall(SYS_seccomp, 0, 99, NULL);
}

static void change_place(void)
{
    chroot("/");
    unshare(CLONE_FS);
}

static void end(void) { _exit(0); }

static void (*const calls[])(void) = {set_limit, set_stack, forbid_calls, change_place, end};

static int child(void *call)
{
    (*(void (*const *)(void))call)();
    syscall(SYS_exit_group, 0);
    __builtin_unreachable();
}

int main(void)
{
    static char stack[1 << 18] __attribute__((aligned(64))), zeros[1 << 16] __attribute__((aligned(4096)));
    const int flags = CLONE_FS | CLONE_VM | CLONE_VFORK | CLONE_SETTLS | SIGCHLD;
    host_begin();
    pthread_t burner = burner_begin();
    host_say("ready");
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        int status;
        memset(zeros, 0, sizeof zeros);
        pid_t pid = clone(child, stack + sizeof stack, flags, (void *)&calls[i], NULL, zeros + sizeof zeros / 2, NULL);
        HOST_CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    host_wait_for_end();
    pthread_join(burner, NULL);
    return host_end();
}
