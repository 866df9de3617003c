/* A thread that the kernel kills for reading the time stamp counter (prctl(2), PR_SET_TSC), and one that it starts and that inherits this: they are
 * sampled and live. (Seen with stress-ng's sigsegv stressor, which was killed in the handler.) */
// cflags: -O2
// record: samples=500&hz=500
// expect: share of forbidden with stack forbidden_main >= 0.9
// expect: share of heir with stack heir_main >= 0.9
#include "host.h"

#include <sys/prctl.h>

static volatile uint64_t sink;

FRAME static void *heir_main(void *argument)
{
    host_arrive();
    while (!atomic_load(&host_ending))
        sink++;
    return argument;
}
FRAME static void *forbidden_main(void *argument)
{
    HOST_CHECK(prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0) == 0);
    pthread_t heir = host_thread("heir", heir_main, NULL);
    host_arrive();
    while (!atomic_load(&host_ending))
        sink++;
    pthread_join(heir, NULL);
    return argument;
}

int main(void)
{
    host_begin();
    pthread_t forbidden = host_thread("forbidden", forbidden_main, NULL);
    host_wait_until_arrived(2);
    host_say("ready");
    host_wait_for_end();
    pthread_join(forbidden, NULL);
    return host_end();
}
