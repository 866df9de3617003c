/* 5,000 frames, more than a sample holds: both ends are kept, with a remark between
 * them on how many frames were left out. Once blocked (main), once running (burner). */
// cflags: -O2
// record: samples=100&hz=100
// expect: every sample of main has stack main;descend;descend;[*elided*];descend;descend;bottom
// expect: every sample of main is complete
// expect: depth of main >= 1024
// expect: every sample of burner has stack burner_main;descend;descend;[*elided*];descend;descend;bottom;burn
// expect: every sample of burner is complete
// expect: depth of burner >= 1024
#include "host.h"

static volatile uint64_t sink;

FRAME static void burn(void)
{
    host_arrive();
    while (!atomic_load_explicit(&host_ending, memory_order_relaxed))
        sink++;
}
FRAME static void bottom(bool blocked)
{
    if (blocked) {
        host_say("ready");
        host_wait_for_end();
    } else {
        burn();
    }
    NOT_A_TAIL_CALL();
}
FRAME static void descend(int depth, bool blocked)
{
    if (depth == 0)
        bottom(blocked);
    else
        descend(depth - 1, blocked);
    NOT_A_TAIL_CALL();
}
FRAME static void *burner_main(void *argument)
{
    descend(5000, false);
    NOT_A_TAIL_CALL();
    return argument;
}

int main(void)
{
    host_begin();
    pthread_t burner = host_thread("burner", burner_main, NULL);
    while (sink == 0)
        NOT_A_TAIL_CALL();
    descend(5000, true);
    pthread_join(burner, NULL);
    return host_end();
}
