/* Threads that block every signal by a system call of their own, also those that the C library keeps for itself: the
 * agent's is one of them. They cannot be sampled while they compute. The recording must count that time as not sampled
 * (`unsampled_cpu_ns`). It must show the threads in system calls like all others. The hazard: running time is given to a
 * stack of another moment. */
// cflags: -O2
// record: samples=600&hz=200
// expect: every sample of sleeper has stack sleeper_main;sleep_masked
// expect: every sample of sleeper is complete
// expect: every sample of changing has stack changing_main;sleep_masked
// expect: stats unsampled_cpu_ns >= 100000000
#include "host.h"
#include <signal.h>

static void block_all(void)
{
    const uint64_t all = UINT64_MAX;
    HOST_CHECK(syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, NULL, sizeof all) == 0);
}
FRAME static void sleep_masked(long microseconds)
{
    const struct timespec time = {microseconds / 1000000, microseconds % 1000000 * 1000};
    nanosleep(&time, NULL);
    NOT_A_TAIL_CALL();
}
/* 40 ms of CPU time, however many others want the CPUs. */
FRAME static void compute(void)
{
    static volatile uint64_t sink;
    for (uint64_t start = host_thread_cpu_ns(); host_thread_cpu_ns() - start < 40000000;)
        for (int i = 0; i < 1000000; i++)
            sink++;
}
FRAME static void *sleeper_main(void *argument)
{
    block_all();
    host_arrive();
    sleep_masked(3600L * 1000000);
    return argument;
}
FRAME static void *changing_main(void *argument)
{
    block_all();
    host_arrive();
    while (!atomic_load(&host_ending)) {
        compute();
        sleep_masked(40000);
    }
    return argument;
}

int main(void)
{
    host_begin();
    host_thread("sleeper", sleeper_main, NULL);
    host_thread("changing", changing_main, NULL);
    host_wait_until_blocked(2);
    host_say("ready");
    host_wait_for_end();
    return host_end();
}
