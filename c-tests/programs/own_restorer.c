/* A handler that is installed without the C library, with code of the program's own behind it that returns from signals.
 * No unwind information describes it. What was interrupted must not be left out. The program keeps frame pointers. */
// cflags: -O2 -fno-omit-frame-pointer
// record: samples=500&hz=500
// expect: every sample of caller has stack caller_main;signal_itself;syscall;return_from_signal;on_signal;burn
// expect: every sample of caller is complete
#include "host.h"

static volatile uint64_t sink;

void return_from_signal(void);
#if defined(__x86_64__)
__asm__(".text\n.p2align 4\n.type return_from_signal, @function\nreturn_from_signal:\n"
        "  mov $15, %rax\n  syscall\n.size return_from_signal, .-return_from_signal\n"
        ".type another, @function\nanother:\n  ret\n.size another, .-another\n");
#else
#error "x86-64 only"
#endif

/* As the kernel has it. */
struct kernels_action {
    void (*handler)(int);
    unsigned long flags;
    void (*restorer)(void);
    unsigned long mask;
};
enum { HAS_RESTORER = 0x04000000 };

FRAME static void burn(void)
{
    host_arrive();
    while (!atomic_load_explicit(&host_ending, memory_order_relaxed))
        sink++;
}
static void on_signal(int number)
{
    (void)number;
    burn();
    NOT_A_TAIL_CALL();
}
FRAME static void signal_itself(void)
{
    syscall(SYS_tgkill, getpid(), (pid_t)syscall(SYS_gettid), SIGUSR1);
    NOT_A_TAIL_CALL();
}
FRAME static void *caller_main(void *argument)
{
    signal_itself();
    return argument;
}

int main(void)
{
    struct kernels_action action = {.handler = on_signal, .flags = HAS_RESTORER, .restorer = return_from_signal};
    host_begin();
    HOST_CHECK(syscall(SYS_rt_sigaction, SIGUSR1, &action, NULL, sizeof action.mask) == 0);
    pthread_t caller = host_thread("caller", caller_main, NULL);
    host_wait_until_arrived(1);
    host_say("ready");
    host_wait_for_end();
    pthread_join(caller, NULL);
    return host_end();
}
