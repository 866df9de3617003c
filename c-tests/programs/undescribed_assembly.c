/* Assembly as in OpenBLAS, x264 and GMP: no unwind information, the stack pointer realigned, its old value in a register
 * or on the stack, the frame pointer used for something else. What a function's end says leads to its caller, but for
 * the first samples, which show that there is such code. A thread whose code does not say how it ends stays truncated. */
// cflags: -O2 -fno-omit-frame-pointer
// record: samples=400&hz=200&mode=cpu
// expect: every sample of never_ends is truncated
// record: samples=400&hz=200&mode=cpu
// expect: share of in_register with stack thread_main;call_assembly;in_register >= 0.9
// expect: share of on_stack with stack thread_main;call_assembly;on_stack >= 0.9
// expect: share of pushes with stack thread_main;call_assembly;pushes >= 0.9
// expect: share of realigned with stack thread_main;call_assembly;calls_its_part;its_part >= 0.9
// expect: share of leaf with stack thread_main;call_assembly;leaf >= 0.9
// expect: every sample of never_ends is truncated
#include "host.h"

#if defined(__x86_64__)
#define ASSEMBLY(name, body) \
    __asm__(".text\n.p2align 4\n.globl " #name "\n.type " #name ", @function\n" #name ":\n" body ".size " #name ", .-" #name "\n")
/* rdi: until this is not 0. Each function uses rbp as a counter, which is no address. */
#define LOOP "1:\n  inc %rbp\n  vpxor %ymm3, %ymm3, %ymm3\n  cmpb $0, (%rdi)\n  je 1b\n  vzeroupper\n"

ASSEMBLY(in_register,
         "  sub $0x60, %rsp\n  mov %rbx, (%rsp)\n  mov %rbp, 8(%rsp)\n  mov %r12, 16(%rsp)\n"
         "  mov %rsp, %rbx\n  sub $0x7080, %rsp\n  and $-4096, %rsp\n  mov $1, %ebp\n" LOOP
         "  mov %rbx, %rsp\n  mov (%rsp), %rbx\n  mov 8(%rsp), %rbp\n  mov 16(%rsp), %r12\n  add $0x60, %rsp\n  ret\n");
ASSEMBLY(on_stack,
         "  push %rbp\n  mov %rsp, %rax\n  sub $0x88, %rsp\n  and $-32, %rsp\n  mov %rax, 0x40(%rsp)\n  xor %eax, %eax\n"
         "  mov $1, %ebp\n" LOOP "  mov 0x40(%rsp), %rsp\n  pop %rbp\n  ret\n");
ASSEMBLY(pushes,
         "  push %rbp\n  push %rbx\n  push %r12\n  mov $1, %ebp\n  test %rdi, %rdi\n  je 2f\n  sub $24, %rsp\n" LOOP
         "  lea 24(%rsp), %rsp\n  pop %r12\n  pop %rbx\n  pop %rbp\n  ret\n"
         "2:\n  pop %r12\n  pop %rbx\n  pop %rbp\n  ret\n");
ASSEMBLY(its_part, LOOP "  ret\n");
ASSEMBLY(calls_its_part,
         "  mov %rsp, %rcx\n  and $-32, %rsp\n  sub $0x68, %rsp\n  mov %rbp, (%rsp)\n  mov $1, %ebp\n  call its_part\n"
         "  mov (%rsp), %rbp\n  mov %rcx, %rsp\n  ret\n");
ASSEMBLY(leaf, "  mov %rbp, %rdx\n" LOOP "  mov %rdx, %rbp\n  ret\n");
ASSEMBLY(never_ends, "  push %rbp\n  push %rbx\n" LOOP "  lea 3f(%rip), %rax\n  jmp *%rax\n"
         "3:\n  pop %rbx\n  pop %rbp\n  ret\n");
#else
#error "x86-64 only"
#endif

typedef void assembly(const atomic_bool *end);
assembly in_register, on_stack, pushes, calls_its_part, leaf, never_ends;

FRAME static void call_assembly(assembly *function)
{
    function(&host_ending);
    NOT_A_TAIL_CALL();
}

static void *thread_main(void *argument)
{
    host_arrive();
    call_assembly((assembly *)argument);
    return NULL;
}

int main(void)
{
    static const struct {
        const char *name;
        assembly *function;
    } all[] = {{"in_register", in_register}, {"on_stack", on_stack}, {"pushes", pushes},
               {"realigned", calls_its_part}, {"leaf", leaf},        {"never_ends", never_ends}};
    enum { THREADS = sizeof all / sizeof *all };
    pthread_t threads[THREADS];
    host_begin();
    for (int i = 0; i < THREADS; i++)
        threads[i] = host_thread(all[i].name, thread_main, (void *)all[i].function);
    host_wait_until_arrived(THREADS);
    host_say("ready");
    host_wait_for_end();
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    return host_end();
}
