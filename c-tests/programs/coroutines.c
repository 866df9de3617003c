/* Coroutines on stacks of their own. The stack of one that makecontext(3) made ends in the C library, at the start of a
 * function that no call leads to: the address before it is padding. The stack of one that a switch in assembly entered
 * ends in an entry whose unwind information marks it as the outermost frame. The recording must show both to their
 * ends. The hazard: frames of the stack from which a coroutine was entered are taken for its callers. */
// cflags: -O2 -fomit-frame-pointer
// record: samples=500&hz=500
// expect: every sample of context has stack context_entry;inside;burn
// expect: every sample of context is complete
// expect: stats truncated = 0
// expect: every sample of assembly has stack switch_entry;switched;inside;burn
// expect: every sample of blocked has stack switch_entry;switched_to_read;wait_for_answer
#include "host.h"
#include <sys/mman.h>
#include <ucontext.h>

#define STACK_BYTES (64 * 1024)

static volatile uint64_t sink;
static int ends[2];
static ucontext_t resumer, coroutine;

FRAME static void burn(void)
{
    host_arrive();
    while (!atomic_load_explicit(&host_ending, memory_order_relaxed))
        sink++;
}
FRAME static void inside(void)
{
    burn();
    NOT_A_TAIL_CALL();
}
FRAME static void context_entry(void)
{
    inside();
    NOT_A_TAIL_CALL();
}
static void *new_stack(void)
{
    void *stack =
        mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    HOST_CHECK(stack != MAP_FAILED);
    return stack;
}
FRAME static void *context_main(void *argument)
{
    HOST_CHECK(getcontext(&coroutine) == 0);
    coroutine.uc_stack.ss_sp = new_stack();
    coroutine.uc_stack.ss_size = STACK_BYTES;
    coroutine.uc_link = &resumer;
    makecontext(&coroutine, context_entry, 0);
    HOST_CHECK(swapcontext(&resumer, &coroutine) == 0);
    return argument;
}

FRAME UNUSED static void wait_for_answer(void)
{
    char byte;
    host_arrive();
    ssize_t got = read(ends[0], &byte, 1);
    HOST_CHECK(got == 0);
}
FRAME void switched(void)
{
    inside();
    NOT_A_TAIL_CALL();
}
FRAME void switched_to_read(void)
{
    wait_for_answer();
    NOT_A_TAIL_CALL();
}
/* Runs a function on another stack and comes back. */
void switch_to(void *stack_end, void (*function)(void));
#if defined(__x86_64__)
__asm__(".text\n.type switch_to, @function\nswitch_to:\n"
        ".cfi_startproc\n"
        "push %rbx\n.cfi_adjust_cfa_offset 8\n.cfi_offset rbx, -16\n"
        "mov %rsp, %rbx\n.cfi_def_cfa_register rbx\n"
        "mov %rdi, %rsp\n"
        "call switch_entry\n"
        "mov %rbx, %rsp\n.cfi_def_cfa_register rsp\n"
        "pop %rbx\n.cfi_adjust_cfa_offset -8\n.cfi_restore rbx\n"
        "ret\n.cfi_endproc\n.size switch_to, .-switch_to\n"
        ".type switch_entry, @function\nswitch_entry:\n"
        ".cfi_startproc\n.cfi_undefined rip\n"
        "sub $8, %rsp\n"
        "call *%rsi\n"
        "add $8, %rsp\n"
        "ret\n.cfi_endproc\n.size switch_entry, .-switch_entry\n");
#else
FRAME void switch_entry(void (*function)(void))
{
    function();
    NOT_A_TAIL_CALL();
}
FRAME void switch_to(void *stack_end, void (*function)(void))
{
    (void)stack_end;
    switch_entry(function);
    NOT_A_TAIL_CALL();
}
#endif
FRAME static void *assembly_main(void *argument)
{
    switch_to((char *)new_stack() + STACK_BYTES, switched);
    return argument;
}
FRAME static void *blocked_main(void *argument)
{
    switch_to((char *)new_stack() + STACK_BYTES, switched_to_read);
    return argument;
}

int main(void)
{
    host_begin();
    HOST_CHECK(pipe(ends) == 0);
    pthread_t blocked = host_thread("blocked", blocked_main, NULL);
    host_wait_until_blocked(1);
    pthread_t context = host_thread("context", context_main, NULL);
    pthread_t assembly = host_thread("assembly", assembly_main, NULL);
    host_wait_until_arrived(3);
    host_say("ready");
    host_wait_for_end();
    close(ends[1]);
    pthread_join(blocked, NULL);
    pthread_join(context, NULL);
    pthread_join(assembly, NULL);
    return host_end();
}
