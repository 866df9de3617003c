/* A function of which a part lies in a segment of its own, behind the program's data, as optimizers of linked programs lay out what
 * seldom runs: the object's code is in several places, and the part's frame description begins in the middle of things. */
// cflags: -O2 -fomit-frame-pointer -no-pie -Wl,--section-start=far_code=0x20000000
// record: samples=500&hz=500
// expect: every sample of burner has stack burner_main;burn
// expect: every sample of burner is complete
// expect: every sample of reader has stack reader_main;wait_for_answer
// expect: every sample of reader is complete
#include "host.h"

static volatile uint64_t sink;
static int ends[2];

FRAME __attribute__((section("far_code"))) static void burn(void)
{
    host_arrive();
    while (!atomic_load_explicit(&host_ending, memory_order_relaxed))
        sink++;
}
FRAME static void wait_for_answer(void)
{
    char byte;
    host_arrive();
    ssize_t got = read(ends[0], &byte, 1);
    HOST_CHECK(got == 0);
}
/* Calls a function from its far part and comes back. */
void split(void (*function)(void));
#if defined(__x86_64__)
__asm__(".text\n.type split, @function\nsplit:\n"
        ".cfi_startproc\n"
        "push %rbx\n.cfi_adjust_cfa_offset 8\n.cfi_offset rbx, -16\n"
        "sub $160, %rsp\n.cfi_adjust_cfa_offset 160\n"
        "jmp split_far\n"
        "split_back:\n"
        "add $160, %rsp\n.cfi_adjust_cfa_offset -160\n"
        "pop %rbx\n.cfi_adjust_cfa_offset -8\n.cfi_restore rbx\n"
        "ret\n.cfi_endproc\n.size split, .-split\n"
        ".pushsection far_code, \"ax\", @progbits\n.type split_far, @function\nsplit_far:\n"
        ".cfi_startproc\n.cfi_def_cfa_offset 176\n.cfi_offset rbx, -16\n"
        "call *%rdi\n"
        "jmp split_back\n.cfi_endproc\n.size split_far, .-split_far\n.popsection\n");
#else
FRAME __attribute__((section("far_code"))) void split(void (*function)(void))
{
    function();
    NOT_A_TAIL_CALL();
}
#endif
FRAME static void *burner_main(void *argument)
{
    split(burn);
    return argument;
}
FRAME static void *reader_main(void *argument)
{
    split(wait_for_answer);
    return argument;
}

int main(void)
{
    host_begin();
    HOST_CHECK(pipe(ends) == 0);
    pthread_t reader = host_thread("reader", reader_main, NULL);
    host_wait_until_blocked(1);
    pthread_t burner = host_thread("burner", burner_main, NULL);
    host_wait_until_arrived(2);
    host_say("ready");
    host_wait_for_end();
    close(ends[1]);
    pthread_join(burner, NULL);
    pthread_join(reader, NULL);
    return host_end();
}
