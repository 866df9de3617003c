/* Threads that sleep in calls with a time-out, which any signal ends with EINTR, in a program whose handlers block all signals. The host must
 * see each such call last its time, with registers and mask as they were, and each that a signal of its own interrupts end. The hazard: our
 * signal ends a sleep, or its handler changes a register or the mask. */
// cflags: -O2
// record: samples=6000&hz=4000
// expect: samples >= 4000
// record: samples=12000&hz=4000&mode=cpu
// expect: samples >= 100
#include "host.h"

#include <linux/futex.h>
#include <poll.h>
#include <stddef.h>

#define SHORT_NS 60000
#define LONG_S 20

static volatile uint64_t sink;
static atomic_int handled, woken;
static char sleeper[32];

FRAME static void compute(void)
{
    for (int i = 0; i < 4000; i++)
        sink++;
}
static void count(int signal)
{
    (void)signal;
    atomic_fetch_add(&handled, 1);
}
static uint64_t mask_of_thread(void)
{
    uint64_t mask = 0;
    HOST_CHECK(syscall(SYS_rt_sigprocmask, SIG_SETMASK, NULL, &mask, sizeof mask) == 0);
    return mask;
}

#if defined(__x86_64__)
/* What a call changes lies in rax, rcx and r11 only: its arguments' registers, rbx, rbp, r12 to r15, the vector registers, x87's st(0), its control word
 * and MXCSR are as before. */
struct registers {
    uint64_t arguments[6], others[6], result, flags;
    uint8_t vectors[16][32];
    uint32_t mxcsr;
    uint16_t x87_control;
    double x87;
};

__attribute__((naked)) static void call_with(const struct registers *before, struct registers *after)
{
    (void)before, (void)after;
    __asm__("push %rbx\n push %rbp\n push %r12\n push %r13\n push %r14\n push %r15\n push %rsi\n"
            "mov %rdi, %rax\n"
            "ldmxcsr 624(%rax)\n fldcw 628(%rax)\n fldl 632(%rax)\n"
            "vmovdqu 112(%rax), %ymm0\n vmovdqu 144(%rax), %ymm1\n vmovdqu 176(%rax), %ymm2\n vmovdqu 208(%rax), %ymm3\n"
            "vmovdqu 240(%rax), %ymm4\n vmovdqu 272(%rax), %ymm5\n vmovdqu 304(%rax), %ymm6\n vmovdqu 336(%rax), %ymm7\n"
            "vmovdqu 368(%rax), %ymm8\n vmovdqu 400(%rax), %ymm9\n vmovdqu 432(%rax), %ymm10\n vmovdqu 464(%rax), %ymm11\n"
            "vmovdqu 496(%rax), %ymm12\n vmovdqu 528(%rax), %ymm13\n vmovdqu 560(%rax), %ymm14\n vmovdqu 592(%rax), %ymm15\n"
            "mov 48(%rax), %rbx\n mov 56(%rax), %rbp\n mov 64(%rax), %r12\n mov 72(%rax), %r13\n mov 80(%rax), %r14\n mov 88(%rax), %r15\n"
            /* syscall(SYS_futex, …): its arguments are one register further on, and the last is on the stack. */
            "pushq 40(%rax)\n"
            "mov 0(%rax), %rsi\n mov 8(%rax), %rdx\n mov 16(%rax), %rcx\n mov 24(%rax), %r8\n mov 32(%rax), %r9\n"
            "mov $202, %edi\n"
            "call syscall@PLT\n"
            "lea 8(%rsp), %rsp\n"
            "pop %rcx\n"
            "mov %rax, 96(%rcx)\n"
            "mov %rdi, 0(%rcx)\n mov %rsi, 8(%rcx)\n mov %rdx, 16(%rcx)\n mov %r10, 24(%rcx)\n mov %r8, 32(%rcx)\n mov %r9, 40(%rcx)\n"
            "mov %rbx, 48(%rcx)\n mov %rbp, 56(%rcx)\n mov %r12, 64(%rcx)\n mov %r13, 72(%rcx)\n mov %r14, 80(%rcx)\n mov %r15, 88(%rcx)\n"
            "pushfq\n popq 104(%rcx)\n"
            "vmovdqu %ymm0, 112(%rcx)\n vmovdqu %ymm1, 144(%rcx)\n vmovdqu %ymm2, 176(%rcx)\n vmovdqu %ymm3, 208(%rcx)\n"
            "vmovdqu %ymm4, 240(%rcx)\n vmovdqu %ymm5, 272(%rcx)\n vmovdqu %ymm6, 304(%rcx)\n vmovdqu %ymm7, 336(%rcx)\n"
            "vmovdqu %ymm8, 368(%rcx)\n vmovdqu %ymm9, 400(%rcx)\n vmovdqu %ymm10, 432(%rcx)\n vmovdqu %ymm11, 464(%rcx)\n"
            "vmovdqu %ymm12, 496(%rcx)\n vmovdqu %ymm13, 528(%rcx)\n vmovdqu %ymm14, 560(%rcx)\n vmovdqu %ymm15, 592(%rcx)\n"
            "stmxcsr 624(%rcx)\n fnstcw 628(%rcx)\n fstpl 632(%rcx)\n"
            "vzeroupper\n fninit\n movl $0x1f80, -8(%rsp)\n ldmxcsr -8(%rsp)\n"
            "pop %r15\n pop %r14\n pop %r13\n pop %r12\n pop %rbp\n pop %rbx\n ret\n");
}
static void keep_registers(unsigned round)
{
    static const uint32_t never = 0;
    const struct timespec moment = {0, SHORT_NS};
    struct registers before, after = {0};
    _Static_assert(offsetof(struct registers, mxcsr) == 624 && offsetof(struct registers, x87) == 632, "where the assembler has them");
    memset(&before, 0x5a ^ (int)round, sizeof before);
    const uint64_t arguments[6] = {(uint64_t)&never, FUTEX_WAIT_PRIVATE, 0, (uint64_t)&moment, 0x1234 + round, 0x9876 + round};
    memcpy(before.arguments, arguments, sizeof arguments);
    uint8_t *bytes = (uint8_t *)before.vectors;
    for (unsigned i = 0; i < sizeof before.vectors; i++)
        bytes[i] = (uint8_t)(i * 7 + round);
    before.mxcsr = 0x1f80 | (round & 3) << 13;
    before.x87_control = (uint16_t)(0x37f ^ (round & 3) << 10);
    before.x87 = round;
    call_with(&before, &after);
    HOST_CHECK((int64_t)after.result == -1 && errno == ETIMEDOUT);
    HOST_CHECK(memcmp(before.arguments, after.arguments, sizeof before.arguments) == 0);
    HOST_CHECK(memcmp(before.others, after.others, sizeof before.others) == 0);
    HOST_CHECK(memcmp(before.vectors, after.vectors, sizeof before.vectors) == 0);
    HOST_CHECK(before.mxcsr == after.mxcsr && before.x87_control == after.x87_control && before.x87 == after.x87);
}
#endif

FRAME static void *keeps_registers(void *argument)
{
    host_arrive();
    for (unsigned round = 0; !atomic_load(&host_ending); round++) {
        compute();
#if defined(__x86_64__)
        if (__builtin_cpu_supports("avx"))
            keep_registers(round);
#endif
    }
    return argument;
}
FRAME static void *waits(void *argument)
{
    const struct timespec moment = {0, SHORT_NS};
    sigset_t some;
    stack_t alternate = {.ss_size = 65536, .ss_sp = malloc(65536)};
    HOST_CHECK(argument == NULL || sigaltstack(&alternate, NULL) == 0);
    sigemptyset(&some), sigaddset(&some, SIGUSR2), sigaddset(&some, SIGRTMAX);
    HOST_CHECK(pthread_sigmask(SIG_BLOCK, &some, NULL) == 0);
    const uint64_t mask = mask_of_thread();
    host_arrive();
    while (!atomic_load(&host_ending)) {
        compute();
        HOST_CHECK(poll(NULL, 0, 1) == 0);
        compute();
        HOST_CHECK(nanosleep(&moment, NULL) == 0);
        compute();
        HOST_CHECK(clock_nanosleep(CLOCK_REALTIME, 0, &moment, NULL) == 0);
        HOST_CHECK(mask_of_thread() == mask);
    }
    free(alternate.ss_sp);
    return argument;
}
/* Sleeps until a signal ends the call. */
FRAME static void *is_woken(void *argument)
{
    const struct timespec forever = {LONG_S, 0};
    snprintf(sleeper, sizeof sleeper, "%ld", (long)syscall(SYS_gettid));
    host_arrive();
    for (;;) { /* as long as a thread wakes it */
        int before = atomic_load(&handled);
        compute();
        HOST_CHECK(nanosleep(&forever, NULL) == -1 && errno == EINTR);
        HOST_CHECK(atomic_load(&handled) > before);
        atomic_fetch_add(&woken, 1);
    }
    return argument;
}
/* At the program's end it may be gone first. */
static void wake(pthread_t thread)
{
    HOST_CHECK(pthread_kill(thread, SIGUSR1) == 0 || atomic_load(&host_ending));
}
/* Wakes it at any time, and once more when it sleeps: that must end its sleep. */
FRAME static void *wakes(void *argument)
{
    const struct timespec moment = {0, 100000};
    for (unsigned round = 0; !atomic_load(&host_ending); round++) {
        for (unsigned i = 0; i < round % 16 * 100; i++)
            sink++;
        wake(*(pthread_t *)argument);
        while (host_thread_state(sleeper) != 'S')
            nanosleep(&moment, NULL);
        int before = atomic_load(&woken);
        wake(*(pthread_t *)argument);
        for (int tries = 0; atomic_load(&woken) == before; tries++) {
            HOST_CHECK(tries < 50000 || atomic_load(&host_ending));
            nanosleep(&moment, NULL);
        }
    }
    return argument;
}

int main(void)
{
    pthread_t threads[4];
    struct sigaction action = {.sa_handler = count, .sa_flags = SA_RESTART};
    char alternate;
    sigfillset(&action.sa_mask);
    host_begin();
    HOST_CHECK(sigaction(SIGUSR1, &action, NULL) == 0 && sigaction(SIGHUP, &action, NULL) == 0);
    threads[0] = host_thread("registers", keeps_registers, NULL);
    threads[1] = host_thread("waits", waits, NULL);
    threads[2] = host_thread("waits too", waits, &alternate);
    threads[3] = host_thread("is woken", is_woken, NULL);
    host_wait_until_arrived(4);
    host_thread("wakes", wakes, &threads[3]);
    host_say("ready");
    host_wait_for_end();
    return host_end();
}
