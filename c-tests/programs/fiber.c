/* A coroutine as Boost.Context makes it: its stack begins in make_fcontext, which has no unwind information and was not
 * called. The recording must show complete stacks that begin there. The hazard: what lies behind on the stack looks
 * like a caller, and is none. */
// cflags: -O2 -fomit-frame-pointer
// record: samples=200&hz=200&mode=cpu
// expect: share of fiber with stack make_fcontext;inside;burn >= 1
// expect: share of fiber with stack never_called = 0
// expect: stats truncated = 0
#include "host.h"

#define STACK_WORDS 8192

static volatile uint64_t sink;
static uint64_t stack[STACK_WORDS] __attribute__((aligned(64)));

FRAME void never_called(void)
{
    host_arrive();
    NOT_A_TAIL_CALL();
}
FRAME static void burn(void)
{
    host_arrive();
    while (!atomic_load_explicit(&host_ending, memory_order_relaxed))
        sink++;
}
FRAME void inside(void)
{
    burn();
    NOT_A_TAIL_CALL();
}

/* Calls inside on another stack, with a frame pointer to what looks like a frame. */
void jump_to(uint64_t *stack_end);
#if defined(__x86_64__)
__asm__(".text\n.type jump_to, @function\njump_to:\n"
        "  push %rbp\n  push %rbx\n  sub $8, %rsp\n"
        "  mov %rsp, %rbx\n  mov %rdi, %rsp\n  mov %rdi, %rbp\n"
        "  jmp .Lbegin\n"
        ".size jump_to, .-jump_to\n"
        ".skip 256, 0x90\n"
        ".globl make_fcontext\n.type make_fcontext, @function\nmake_fcontext:\n"
        ".Lbegin:\n"
        "  call inside\n"
        "  mov %rbx, %rsp\n"
        "  add $8, %rsp\n  pop %rbx\n  pop %rbp\n  ret\n"
        ".size make_fcontext, .-make_fcontext\n.skip 256, 0x90\n");
#else
#error "x86-64 only"
#endif

static void *fiber_main(void *argument)
{
    uint64_t *end = &stack[STACK_WORDS - 64];
    end[0] = (uint64_t)&stack[STACK_WORDS - 32];
    end[1] = (uint64_t)never_called + 4;
    jump_to(end);
    return argument;
}

int main(void)
{
    host_begin();
    pthread_t fiber = host_thread("fiber", fiber_main, NULL);
    host_wait_until_arrived(1);
    host_say("ready");
    host_wait_for_end();
    pthread_join(fiber, NULL);
    return host_end();
}
