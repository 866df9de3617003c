/* As stubs_bound_at_start.c, with stubs as lld writes them: no unwind information describes them. The program keeps frame
 * pointers. In a stub it is that of the function that has called the stub, which must not be left out. */
// cflags: -O2 -fno-omit-frame-pointer
// record: samples=500&hz=500
// expect: every sample of stubs has stack stubs_main;call_again
// expect: every sample of stubs is complete
#include "host.h"

static volatile uint64_t sink;

uint64_t through_stub(uint64_t value);
#if defined(__x86_64__)
/* The stub of a function that the compiler does not see. Then that function. */
__asm__(".text\n.p2align 4\n.type through_stub, @function\nthrough_stub:\n"
        "  jmp *.Lslot(%rip)\n.size through_stub, .-through_stub\n"
        ".p2align 4\n.type target, @function\ntarget:\n"
        ".cfi_startproc\n  lea 1(%rdi), %rax\n  ret\n.cfi_endproc\n.size target, .-target\n"
        ".data\n.p2align 3\n.Lslot:\n.quad target\n.text\n");
#else
#error "x86-64 only"
#endif

FRAME static void call_again(void)
{
    host_arrive();
    while (!atomic_load_explicit(&host_ending, memory_order_relaxed))
        for (int n = 0; n < 1000; n++)
            sink += through_stub((uint64_t)n);
}
FRAME static void *stubs_main(void *argument)
{
    call_again();
    NOT_A_TAIL_CALL();
    return argument;
}

int main(void)
{
    host_begin();
    pthread_t stubs = host_thread("stubs", stubs_main, NULL);
    host_wait_until_arrived(1);
    host_say("ready");
    host_wait_for_end();
    pthread_join(stubs, NULL);
    return host_end();
}
