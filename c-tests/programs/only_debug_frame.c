/* Code that only a debugger could unwind: its call frame information is in .debug_frame, which is not loaded, and not
 * in .eh_frame. Some is compiled so, some is written in assembly. One thread burns CPU below it, one is blocked below
 * it. The recording must show complete stacks. */
// cflags: -O2 -g -fomit-frame-pointer -fno-asynchronous-unwind-tables -fno-unwind-tables -fno-exceptions -gz
// record: samples=500&hz=500
// expect: every sample of burner has stack burner_main;first;second;through_assembly;burn
// expect: every sample of burner is complete
// expect: every sample of reader has stack reader_main;ask;wait_for_answer
// expect: every sample of reader is complete
// expect: every sample of main has stack _start;main;host_wait_for_end
// expect: every sample of main is complete
#include "host.h"

static volatile uint64_t sink;
static int ends[2];

FRAME static void burn(void)
{
    host_arrive();
    while (!atomic_load_explicit(&host_ending, memory_order_relaxed))
        sink++;
}
void through_assembly(void (*function)(void));
#if defined(__x86_64__)
/* The frame pointer is zero in it, which elsewhere marks the outermost frame. */
__asm__(".text\n.type through_assembly, @function\nthrough_assembly:\n"
        ".cfi_sections .debug_frame\n.cfi_startproc\n"
        "push %rbp\n.cfi_adjust_cfa_offset 8\n.cfi_offset rbp, -16\n"
        "xor %ebp, %ebp\n"
        "sub $64, %rsp\n.cfi_adjust_cfa_offset 64\n"
        "call *%rdi\n"
        "add $64, %rsp\n.cfi_adjust_cfa_offset -64\n"
        "pop %rbp\n.cfi_adjust_cfa_offset -8\n.cfi_restore rbp\n"
        "ret\n.cfi_endproc\n.size through_assembly, .-through_assembly\n");
#else
FRAME void through_assembly(void (*function)(void))
{
    function();
    NOT_A_TAIL_CALL();
}
#endif
FRAME static void second(uint64_t value)
{
    char room[200];
    memset(room, (int)value, sizeof room);
    __asm__ volatile("" ::"r"(room) : "memory");
    through_assembly(burn);
    NOT_A_TAIL_CALL();
}
FRAME static void first(uint64_t value)
{
    second(value + 1);
    NOT_A_TAIL_CALL();
}
FRAME static void *burner_main(void *argument)
{
    first((uintptr_t)argument);
    NOT_A_TAIL_CALL();
    return NULL;
}
FRAME static void wait_for_answer(void)
{
    char byte;
    host_arrive();
    ssize_t got = read(ends[0], &byte, 1);
    HOST_CHECK(got == 0);
}
FRAME static void ask(void)
{
    wait_for_answer();
    NOT_A_TAIL_CALL();
}
FRAME static void *reader_main(void *argument)
{
    ask();
    NOT_A_TAIL_CALL();
    return argument;
}

int main(void)
{
    host_begin();
    HOST_CHECK(pipe(ends) == 0);
    pthread_t reader = host_thread("reader", reader_main, NULL);
    host_wait_until_blocked(1);
    pthread_t burner = host_thread("burner", burner_main, (void *)1);
    host_wait_until_arrived(2);
    host_say("ready");
    host_wait_for_end();
    close(ends[1]);
    pthread_join(burner, NULL);
    pthread_join(reader, NULL);
    return host_end();
}
