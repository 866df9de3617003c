/* Assembly as in video codecs: exported labels without a size, functions without unwind information far behind them, and
 * the frame pointer used for something else, which is 0. No label gives its name to such a function. Until its code was
 * read, the stack is not complete. */
// cflags: -O2 -fomit-frame-pointer
// record: samples=200&hz=200&mode=cpu
// expect: share of assembly with stack exported_label = 0
// record: samples=200&hz=200&mode=cpu
// expect: share of assembly with stack assembly_main;enter_assembly;[unknown];[unknown] >= 0.9
// expect: share of assembly with stack exported_label = 0
#include "host.h"

void enter_assembly(const atomic_bool *end);

#if defined(__x86_64__)
/* The functions are reached by a computed address, as by a table of functions. */
__asm__(".text\n"
        ".globl exported_label\nexported_label:\n  ret\n  .skip 8192, 0x90\n"
        ".Lspin:\n"
        "  cmpb $0, (%rdi)\n  je .Lspin\n  ret\n"
        ".skip 512, 0x90\n"
        ".Louter:\n"
        "  push %rbp\n  push %rdi\n  xor %ebp, %ebp\n"
        "  lea .Ltable(%rip), %rax\n  movslq (%rax), %rcx\n  add %rcx, %rax\n"
        "  call *%rax\n"
        "  pop %rdi\n  pop %rbp\n  ret\n"
        ".skip 512, 0x90\n"
        ".type enter_assembly, @function\nenter_assembly:\n"
        ".cfi_startproc\n"
        "  sub $8, %rsp\n.cfi_adjust_cfa_offset 8\n"
        "  lea .Ltable(%rip), %rax\n  movslq 4(%rax), %rcx\n  add %rcx, %rax\n"
        "  call *%rax\n"
        "  add $8, %rsp\n.cfi_adjust_cfa_offset -8\n"
        "  ret\n.cfi_endproc\n.size enter_assembly, .-enter_assembly\n"
        ".section .rodata\n.Ltable:\n.long .Lspin - .Ltable, .Louter - .Ltable\n.text\n");
#else
#error "x86-64 only"
#endif

static void *assembly_main(void *argument)
{
    host_arrive();
    enter_assembly(&host_ending);
    return argument;
}

int main(void)
{
    host_begin();
    pthread_t assembly = host_thread("assembly", assembly_main, NULL);
    host_wait_until_arrived(1);
    host_say("ready");
    host_wait_for_end();
    pthread_join(assembly, NULL);
    return host_end();
}
