/* Hand-written assembly whose frames are relative to rbx, r12, or a word that r13 points to. It calls C functions that
 * use these registers for themselves: the registers' values are in the frames of those functions. One thread burns CPU
 * below, one is blocked below, one is in a signal handler below, one is below a recursion through them and
 * through a function whose caller's stack pointer is not the CFA. The recording must show complete stacks. The burning
 * thread has an alternate signal stack, and reports how much of it the agent's handler has used: at most 512 bytes more
 * than an empty handler. */
// cflags: -O2 -fomit-frame-pointer
// record: samples=500&hz=500
// expect: every sample of burner has stack burner_main;through_rbx;second;through_r12;third;through_r13;burn
// expect: every sample of burner is complete
// expect: every sample of reader has stack reader_main;through_rbx;second;through_r12;third;through_r13;wait_for_answer
// expect: every sample of reader is complete
// expect: every sample of handler has stack handler_main;through_rbx;second;through_r12;third;through_r13;on_signal;through_r12;burn
// expect: every sample of handler is complete
// expect: every sample of assembly has stack assembly_main;through_rax;spin
// expect: every sample of assembly is complete
// expect: every sample of recursion has stack recursion_main;through_rbx;deeper;through_r12;deeper;through_rbx;deeper;through_rsp;deeper;through_rbx;deeper;through_r12;deeper;burn
// expect: every sample of recursion is complete
#include "host.h"

typedef void work(void *argument);
void through_rbx(work *function, void *argument);
void through_r12(work *function, void *argument);
void through_r13(work *function, void *argument);
void through_rsp(work *function, void *argument);
/* As OpenSSL's aesni_gcm_encrypt: the frame is relative to rax, which the ABI lets calls change and the called assembly does not. */
void through_rax(const atomic_bool *end);

#if defined(__x86_64__)
#define KEEPS_FRAME_IN(REGISTER)                                                        \
    __asm__(".text\n.type through_" REGISTER ", @function\nthrough_" REGISTER ":\n"     \
            ".cfi_startproc\n"                                                          \
            "push %" REGISTER "\n.cfi_adjust_cfa_offset 8\n.cfi_offset " REGISTER ", -16\n" \
            "mov %rsp, %" REGISTER "\n.cfi_def_cfa_register " REGISTER "\n"             \
            "and $-64, %rsp\n"                                                          \
            "sub $192, %rsp\n"                                                          \
            "mov %rdi, %rax\n"                                                          \
            "mov %rsi, %rdi\n"                                                          \
            "call *%rax\n"                                                              \
            "mov %" REGISTER ", %rsp\n.cfi_def_cfa_register rsp\n"                      \
            "pop %" REGISTER "\n.cfi_adjust_cfa_offset -8\n.cfi_restore " REGISTER "\n" \
            "ret\n"                                                                     \
            ".cfi_endproc\n.size through_" REGISTER ", .-through_" REGISTER "\n")
KEEPS_FRAME_IN("rbx");
KEEPS_FRAME_IN("r12");
/* The CFA itself is in memory at r13 + 8: DW_CFA_def_cfa_expression (breg13 8; deref). Where r12 is saved says an
 * expression as well: DW_CFA_expression (const1s -24; plus). */
__asm__(".text\n.type through_r13, @function\nthrough_r13:\n"
        ".cfi_startproc\n"
        "push %r13\n.cfi_adjust_cfa_offset 8\n.cfi_offset r13, -16\n"
        "lea 16(%rsp), %rax\n"
        "push %r12\n.cfi_adjust_cfa_offset 8\n.cfi_escape 0x10, 12, 3, 0x09, 0xe8, 0x22\n"
        "mov $4, %r12d\n"
        "sub $24, %rsp\n.cfi_adjust_cfa_offset 24\n"
        "mov %rsp, %r13\n"
        "mov %rax, 8(%r13)\n"
        ".cfi_remember_state\n.cfi_escape 0x0f, 3, 0x7d, 8, 0x06\n"
        "and $-64, %rsp\n"
        "mov %rdi, %rax\n"
        "mov %rsi, %rdi\n"
        "call *%rax\n"
        "mov %r13, %rsp\n.cfi_restore_state\n"
        "add $24, %rsp\n.cfi_adjust_cfa_offset -24\n"
        "pop %r12\n.cfi_adjust_cfa_offset -8\n.cfi_restore r12\n"
        "pop %r13\n.cfi_adjust_cfa_offset -8\n.cfi_restore r13\n"
        "ret\n"
        ".cfi_endproc\n.size through_r13, .-through_r13\n");
__asm__(".text\n.type spin, @function\nspin:\n"
        ".cfi_startproc\n"
        "push %rcx\n.cfi_adjust_cfa_offset 8\n"
        "1: cmpb $0, (%rdi)\n"
        "je 1b\n"
        "pop %rcx\n.cfi_adjust_cfa_offset -8\n"
        "ret\n"
        ".cfi_endproc\n.size spin, .-spin\n"
        ".type through_rax, @function\nthrough_rax:\n"
        ".cfi_startproc\n"
        "mov %rsp, %rax\n.cfi_def_cfa_register rax\n"
        "sub $192, %rsp\n"
        "and $-64, %rsp\n"
        "call spin\n"
        "mov %rax, %rsp\n.cfi_def_cfa_register rsp\n"
        "ret\n"
        ".cfi_endproc\n.size through_rax, .-through_rax\n");
/* DW_CFA_val_offset: the caller's rsp is CFA - 8. */
__asm__(".text\n.type through_rsp, @function\nthrough_rsp:\n"
        ".cfi_startproc\n.cfi_def_cfa rsp, 16\n.cfi_offset rip, -16\n.cfi_escape 0x14, 7, 1\n"
        "sub $24, %rsp\n.cfi_adjust_cfa_offset 24\n"
        "mov %rdi, %rax\n"
        "mov %rsi, %rdi\n"
        "call *%rax\n"
        "add $24, %rsp\n.cfi_adjust_cfa_offset -24\n"
        "ret\n"
        ".cfi_endproc\n.size through_rsp, .-through_rsp\n");
/* Saves the registers and puts something else in them. */
#define USE_THEM() \
    __asm__ volatile("mov $1, %%ebx\nmov $2, %%r12d\nmov $3, %%r13d" ::: "rbx", "r12", "r13", "memory")
#else
#define USE_THEM() NOT_A_TAIL_CALL()
FRAME static void spin(const atomic_bool *end)
{
    while (!*end)
        ;
    NOT_A_TAIL_CALL();
}
FRAME void through_rax(const atomic_bool *end)
{
    spin(end);
    NOT_A_TAIL_CALL();
}
FRAME void through_rbx(work *function, void *argument)
{
    function(argument);
    NOT_A_TAIL_CALL();
}
FRAME void through_r12(work *function, void *argument)
{
    function(argument);
    NOT_A_TAIL_CALL();
}
FRAME void through_r13(work *function, void *argument)
{
    function(argument);
    NOT_A_TAIL_CALL();
}
FRAME void through_rsp(work *function, void *argument)
{
    function(argument);
    NOT_A_TAIL_CALL();
}
#endif

static volatile uint64_t sink;
static int ends[2];

static unsigned char signal_stack[64 * 1024] __attribute__((aligned(64)));

static void on_nothing(int number)
{
    (void)number;
}
FRAME static void paint(void)
{
    memset(signal_stack, 0xa5, sizeof signal_stack);
}
/* Bytes of the alternate stack that were written, from its end down to the lowest. */
FRAME static size_t used(void)
{
    size_t untouched = 0;
    while (untouched < sizeof signal_stack && ((volatile unsigned char *)signal_stack)[untouched] == 0xa5)
        untouched++;
    return sizeof signal_stack - untouched;
}
FRAME static void burn(void *argument)
{
    (void)argument;
    USE_THEM();
    host_arrive();
    while (!atomic_load_explicit(&host_ending, memory_order_relaxed))
        sink++;
    USE_THEM();
}
FRAME static void wait_for_answer(void *argument)
{
    char byte;
    (void)argument;
    USE_THEM();
    host_arrive();
    ssize_t got = read(ends[0], &byte, 1);
    HOST_CHECK(got == 0);
    USE_THEM();
}
FRAME static void signal_itself(void *argument)
{
    (void)argument;
    USE_THEM();
    pthread_kill(pthread_self(), SIGUSR1);
    USE_THEM();
}
FRAME static void on_signal(int number)
{
    (void)number;
    USE_THEM();
    through_r12(burn, NULL);
    NOT_A_TAIL_CALL();
}
FRAME static void third(void *work)
{
    USE_THEM();
    through_r13(work, NULL);
    USE_THEM();
}
FRAME static void second(void *work)
{
    USE_THEM();
    through_r12(third, work);
    USE_THEM();
}
FRAME static void deeper(void *depth)
{
    uintptr_t left = (uintptr_t)depth;
    USE_THEM();
    if (left == 0)
        burn(NULL);
    else if (left == 3)
        through_rsp(deeper, (void *)(left - 1));
    else if (left % 2)
        through_r12(deeper, (void *)(left - 1));
    else
        through_rbx(deeper, (void *)(left - 1));
    USE_THEM();
}
FRAME static void *recursion_main(void *argument)
{
    through_rbx(deeper, (void *)5);
    return argument;
}
FRAME static void *burner_main(void *argument)
{
    stack_t alternate = {.ss_sp = signal_stack, .ss_size = sizeof signal_stack};
    HOST_CHECK(sigaltstack(&alternate, NULL) == 0);
    paint();
    pthread_kill(pthread_self(), SIGUSR2);
    size_t empty = used();
    HOST_CHECK(empty > 0);
    paint();
    through_rbx(second, burn);
    size_t most = used();
    host_say("handler stack: %zu above an empty handler's %zu", most > empty ? most - empty : 0, empty);
    /* The deepest way: a frame by an expression, met again while a register is recovered. */
    HOST_CHECK(most <= empty + 512);
    return argument;
}
FRAME static void *reader_main(void *argument)
{
    through_rbx(second, wait_for_answer);
    return argument;
}
FRAME static void *handler_main(void *argument)
{
    through_rbx(second, signal_itself);
    return argument;
}
FRAME static void *assembly_main(void *argument)
{
    host_arrive();
    through_rax(&host_ending);
    return argument;
}

int main(void)
{
    struct sigaction action = {.sa_handler = on_signal};
    struct sigaction nothing = {.sa_handler = on_nothing, .sa_flags = SA_ONSTACK};
    host_begin();
    HOST_CHECK(pipe(ends) == 0);
    HOST_CHECK(sigaction(SIGUSR1, &action, NULL) == 0 && sigaction(SIGUSR2, &nothing, NULL) == 0);
    pthread_t reader = host_thread("reader", reader_main, NULL);
    host_wait_until_blocked(1);
    pthread_t burner = host_thread("burner", burner_main, NULL);
    pthread_t handler = host_thread("handler", handler_main, NULL);
    pthread_t assembly = host_thread("assembly", assembly_main, NULL);
    pthread_t recursion = host_thread("recursion", recursion_main, NULL);
    host_wait_until_arrived(5);
    host_say("ready");
    host_wait_for_end();
    close(ends[1]);
    pthread_join(burner, NULL);
    pthread_join(handler, NULL);
    pthread_join(assembly, NULL);
    pthread_join(recursion, NULL);
    pthread_join(reader, NULL);
    return host_end();
}
