/* Two functions that are marked as signal frames and are none of the kernel's: one with the usual rules, one that goes to
 * another stack and finds the caller's by an expression. OCaml's runtime has such functions below all C functions and
 * below main. And one that is not marked and keeps its stack pointer in a register, as OCaml's own code does. The hazard: registers are looked for where the kernel would have saved them. */
// cflags: -O2
// record: samples=500&hz=500
// expect: every sample of usual has stack usual_main;usual;burn
// expect: every sample of usual is complete
// expect: every sample of switching has stack switching_main;to_other_stack;burn
// expect: every sample of switching is complete
// expect: every sample of unmarked has stack unmarked_main;keeps_stack_in_register;burn
// expect: every sample of unmarked is complete
// expect: every sample of blocked has stack blocked_main;to_other_stack;wait_for_answer
// expect: every sample of blocked is complete
#include "host.h"

#if defined(__x86_64__)
static volatile uint64_t sink;
static int ends[2];
static char stacks[3][64 * 1024] __attribute__((aligned(64)));

FRAME void burn(void)
{
    host_arrive();
    while (!atomic_load_explicit(&host_ending, memory_order_relaxed))
        sink++;
}
FRAME void wait_for_answer(void)
{
    char byte;
    host_arrive();
    ssize_t got = read(ends[0], &byte, 1);
    HOST_CHECK(got == 0);
}
/* Calls the function. */
void usual(void (*function)(void));
/* Calls it on the stack that ends there; so do others. */
void to_other_stack(void (*function)(void), void *end);
void keeps_stack_in_register(void (*function)(void), void *end);
__asm__(".text\n.type usual, @function\nusual:\n"
        ".cfi_startproc\n.cfi_signal_frame\n"
        "push %rbx\n.cfi_adjust_cfa_offset 8\n.cfi_offset rbx, -16\n"
        "call *%rdi\n"
        "pop %rbx\n.cfi_adjust_cfa_offset -8\n.cfi_restore rbx\n"
        "ret\n.cfi_endproc\n.size usual, .-usual\n"
        ".type to_other_stack, @function\nto_other_stack:\n"
        ".cfi_startproc\n.cfi_signal_frame\n"
        "push %rbx\n.cfi_adjust_cfa_offset 8\n.cfi_offset rbx, -16\n"
        "mov %rsp, -16(%rsi)\n"
        "lea -16(%rsi), %rsp\n"
        /* CFA: the word at rsp, and 16. */
        ".cfi_remember_state\n.cfi_escape 0x0f, 5, 0x77, 0, 0x06, 0x23, 16\n"
        "call *%rdi\n"
        "mov (%rsp), %rsp\n.cfi_restore_state\n"
        "pop %rbx\n.cfi_adjust_cfa_offset -8\n.cfi_restore rbx\n"
        "ret\n.cfi_endproc\n.size to_other_stack, .-to_other_stack\n"
        ".type keeps_stack_in_register, @function\nkeeps_stack_in_register:\n"
        ".cfi_startproc\n"
        "push %rbx\n.cfi_adjust_cfa_offset 8\n.cfi_offset rbx, -16\n"
        "mov %rsp, %rbx\n.cfi_def_cfa_register rbx\n"
        "mov %rsi, %rsp\n"
        "call *%rdi\n"
        "mov %rbx, %rsp\n.cfi_def_cfa_register rsp\n"
        "pop %rbx\n.cfi_adjust_cfa_offset -8\n.cfi_restore rbx\n"
        "ret\n.cfi_endproc\n.size keeps_stack_in_register, .-keeps_stack_in_register\n");

FRAME static void *usual_main(void *argument)
{
    usual(burn);
    return argument;
}
FRAME static void *switching_main(void *argument)
{
    to_other_stack(burn, stacks[1]);
    return argument;
}
FRAME static void *unmarked_main(void *argument)
{
    keeps_stack_in_register(burn, stacks[3]);
    return argument;
}
FRAME static void *blocked_main(void *argument)
{
    to_other_stack(wait_for_answer, stacks[2]);
    return argument;
}

int main(void)
{
    host_begin();
    HOST_CHECK(pipe(ends) == 0);
    pthread_t threads[] = {host_thread("usual", usual_main, NULL), host_thread("switching", switching_main, NULL),
                           host_thread("unmarked", unmarked_main, NULL), host_thread("blocked", blocked_main, NULL)};
    host_wait_until_arrived(4);
    host_say("ready");
    host_wait_for_end();
    close(ends[1]);
    for (size_t i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    return host_end();
}
#else
#error "the functions are written in x86-64's assembly"
#endif
