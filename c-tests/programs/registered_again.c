/* JIT code that is registered, deregistered and replaced at the same place by code with a frame of another size, again
 * and again while it is recorded. The recording must show its callers. The hazard: the unwind information of the code
 * before is used. */
// cflags: -O2 -fomit-frame-pointer
// libs: -lgcc_s
// record: samples=600&hz=500
// expect: share of again with stack again_main;work_a_while >= 0.6
#include "jit_code.h"

static volatile uint64_t sink;

static int64_t milliseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}
FRAME static void work_a_while(void)
{
    int64_t end = milliseconds() + 40;
    while (milliseconds() < end && !atomic_load_explicit(&host_ending, memory_order_relaxed))
        for (int n = 0; n < 100000; n++)
            sink++;
}
FRAME static void *again_main(void *argument)
{
    struct made *piece = new_pieces(1);
    for (int round = 0; !atomic_load_explicit(&host_ending, memory_order_relaxed); round++) {
        make(piece, (unsigned char)(16 + 32 * (round % 3)));
        __register_frame(piece->frames);
        host_arrive();
        call(piece, work_a_while);
        __deregister_frame(piece->frames);
    }
    munmap(piece, sizeof *piece);
    return argument;
}

int main(void)
{
    host_begin();
    pthread_t again = host_thread("again", again_main, NULL);
    host_wait_until_arrived(1);
    host_say("ready");
    host_wait_for_end();
    pthread_join(again, NULL);
    return host_end();
}
