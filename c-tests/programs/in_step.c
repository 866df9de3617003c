/* A loop on a timer of 20 ms: with a kernel whose ticks are 4 or 10 ms apart each turn is hit by a tick at the same place, or at none. Timers on
 * the thread's CPU clock, as all profilers that the tick drives, see one of its two functions, or none; preempted at any moment it shows both. */
// cflags: -O2
// record: seconds=8&hz=500&mode=cpu&source=preempt
// expect: samples >= 40
// expect: share of looper with stack looper_main;parse >= 0.5
// expect: share of looper with stack looper_main;render >= 0.08
#include "host.h"

#include <sys/timerfd.h>

enum { TURN_NS = 20000000 };
static volatile uint64_t sink;

FRAME static void parse(void)
{
    for (uint64_t begin = host_thread_cpu_ns(); host_thread_cpu_ns() - begin < 1500000;)
        sink++;
}
FRAME static void render(void)
{
    for (uint64_t begin = host_thread_cpu_ns(); host_thread_cpu_ns() - begin < 500000;)
        sink++;
}
FRAME static void *looper_main(void *argument)
{
    const struct itimerspec every = {{0, TURN_NS}, {0, TURN_NS}};
    int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
    HOST_CHECK(timerfd_settime(timer, 0, &every, NULL) == 0);
    while (!atomic_load(&host_ending)) {
        uint64_t turns;
        parse();
        render();
        HOST_CHECK(read(timer, &turns, sizeof turns) == sizeof turns);
    }
    close(timer);
    return argument;
}

int main(void)
{
    host_begin();
    pthread_t looper = host_thread("looper", looper_main, NULL);
    host_say("ready");
    host_wait_for_end();
    pthread_join(looper, NULL);
    return host_end();
}
