/* A thread that gives up every system call but the return from a signal handler, and continues to compute: any other
 * call ends the process. The host must live. The hazard: the agent's handler, which runs on this thread, makes a system
 * call. The handler makes none once the bounds of the thread's stack are known. The thread gives its calls up without
 * the C library: otherwise the agent would see that it is in a sandbox, and would never sample it. */
// cflags: -O2
#include "host.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>

static atomic_bool close_calls;
static atomic_bool closed;
static volatile uint64_t sink;

static long set_filter(const struct sock_fprog *program)
{
#ifdef __x86_64__
    long result = SYS_prctl;
    __asm__ volatile("syscall" : "+a"(result) : "D"(PR_SET_SECCOMP), "S"(SECCOMP_MODE_FILTER), "d"(program) : "rcx", "r11", "memory");
    return result;
#else
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, program);
#endif
}

static void allow_nothing_but_sigreturn(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_rt_sigreturn, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    };
    const struct sock_fprog program = {.len = sizeof code / sizeof code[0], .filter = code};
    HOST_CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    HOST_CHECK(set_filter(&program) == 0);
}
FRAME static void compute(int depth)
{
    if (depth > 0)
        compute(depth - 1);
    else
        while (!atomic_load(&host_ending)) {
            sink++;
            if (atomic_load(&close_calls) && !atomic_load(&closed)) {
                allow_nothing_but_sigreturn();
                atomic_store(&closed, true);
            }
        }
    NOT_A_TAIL_CALL();
}
FRAME static void *closed_main(void *argument)
{
    compute(30);
    NOT_A_TAIL_CALL();
    return argument;
}

int main(void)
{
    char line[64];
    host_begin();
    host_thread("closed", closed_main, NULL);
    host_say("ready");
    while (host_line(line, sizeof line)) {
        atomic_store(&close_calls, true);
        while (!atomic_load(&closed))
            NOT_A_TAIL_CALL();
        host_say("done");
    }
    /* The thread cannot end, so host_ending is never set; the process can. */
    return host_end();
}
