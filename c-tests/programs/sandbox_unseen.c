/* A thread that enters a sandbox (seccomp(2)) while it is recorded, by system calls of its own and not by the C
 * library's functions, so that the agent does not see them. Its filter kills the process for any call but those that
 * the thread makes itself. It waits for 1.5 s, as a thread that has made itself ready for foreign data does, and
 * computes. The host must live. The hazard: the agent signals the thread, which must not return from a signal
 * handler. */
// cflags: -O2
#include "burner.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>

static atomic_bool enters, is_inside, has_ended;

/* By an inline system call, which no interposed function sees. */
static long call(long number, long first, long second, long third)
{
#if defined __x86_64__
    long result;
    register long fourth __asm__("r10") = 0;
    register long fifth __asm__("r8") = 0;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(first), "S"(second), "d"(third), "r"(fourth), "r"(fifth)
                     : "rcx", "r11", "memory");
    return result;
#else
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = first;
    register long x1 __asm__("x1") = second;
    register long x2 __asm__("x2") = third;
    register long x3 __asm__("x3") = 0;
    register long x4 __asm__("x4") = 0;
    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4) : "memory");
    return x0;
#endif
}
static void enter_sandbox(void)
{
#define ALLOW(call) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        ALLOW(SYS_nanosleep), ALLOW(SYS_exit),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    };
    struct sock_fprog program = {.len = sizeof filter / sizeof *filter, .filter = filter};
    const struct timespec pause = {1, 500000000};
    /* For so long that the timer is armed at no tick any more: one between the calls would kill the host
     * (docs/limits.md). */
    call(SYS_nanosleep, (long)&pause, 0, 0);
    HOST_CHECK(call(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0) == 0);
    HOST_CHECK(call(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, (long)&program) == 0);
    call(SYS_nanosleep, (long)&pause, 0, 0);
}
FRAME static void compute(atomic_bool *until)
{
    while (!atomic_load(until))
        sink++;
}
FRAME static void *unseen_main(void *argument)
{
    compute(&enters);
    if (!atomic_load(&host_ending))
        enter_sandbox();
    atomic_store(&is_inside, true);
    compute(&host_ending);
    atomic_store(&has_ended, true);
    call(SYS_exit, 0, 0, 0);
    return argument;
}

int main(void)
{
    char line[64];
    host_begin();
    host_thread("unseen", unseen_main, NULL);
    host_say("ready");
    const struct timespec pause = {0, 1000000};
    while (host_line(line, sizeof line)) {
        atomic_store(&enters, true);
        while (!atomic_load(&is_inside))
            nanosleep(&pause, NULL);
        host_say("inside");
    }
    atomic_store(&host_ending, true);
    atomic_store(&enters, true);
    for (int i = 0; i < 10000 && !atomic_load(&has_ended); i++)
        nanosleep(&pause, NULL);
    HOST_CHECK(atomic_load(&has_ended));
    return host_end();
}
