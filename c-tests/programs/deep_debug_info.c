/* Debug information that says of `work` that 300,000 functions are inlined into one another in it. The recording must
 * name `work`. The hazard: a reader that follows them by recursion overflows its stack. */
// cflags: -O2 -g0
// record: samples=500&hz=500
// expect: every sample of worker has stack worker_main;work
#include "host.h"

static volatile uint64_t sink;

FRAME void work(void)
{
    while (!atomic_load(&host_ending))
        sink++;
}
FRAME static void *worker_main(void *argument)
{
    work();
    NOT_A_TAIL_CALL();
    return argument;
}

/* A unit and a function with work's addresses, and children in children to the section's end. */
__asm__(".pushsection .debug_abbrev,\"\",@progbits\n"
        ".uleb128 1, 0x11\n.byte 1\n.uleb128 0x11, 0x01, 0x12, 0x07, 0, 0\n"
        ".uleb128 2, 0x2e\n.byte 1\n.uleb128 0x11, 0x01, 0x12, 0x07, 0, 0\n"
        ".uleb128 3, 0x1d\n.byte 1\n.uleb128 0, 0\n"
        ".byte 0\n"
        ".popsection\n"
        ".pushsection .debug_info,\"\",@progbits\n"
        ".long 2f - 1f\n1: .short 4\n.long 0\n.byte 8\n"
        ".uleb128 1\n.quad work, 64\n"
        ".uleb128 2\n.quad work, 64\n"
        ".rept 300000\n.byte 3\n.endr\n"
        "2:\n"
        ".popsection\n");

int main(void)
{
    host_begin();
    pthread_t worker = host_thread("worker", worker_main, NULL);
    while (sink == 0)
        NOT_A_TAIL_CALL();
    host_say("ready");
    host_wait_for_end();
    pthread_join(worker, NULL);
    return host_end();
}
