/* A pool of threads, each of which computes for 4 ms every two seconds or so, and sleeps before for longer than its timer is armed again at each tick. Most of
 * them are never hit. The samples of the others represent all, and a burst's first half has as many as its second. */
// cflags: -O2
// record: seconds=6&hz=100&mode=cpu
// expect: seconds without a stack <= 0.4
// expect: share of * with stack worker_main;parse >= 0.15
// expect: share of * with stack worker_main;render >= 0.15
#include "host.h"

enum { THREADS = 150 };
static volatile uint64_t sink;

FRAME static void parse(uint64_t begin)
{
    while (host_thread_cpu_ns() - begin < 2000000)
        sink++;
}
FRAME static void render(uint64_t begin)
{
    while (host_thread_cpu_ns() - begin < 4000000)
        sink++;
}
FRAME static void *worker_main(void *argument)
{
    unsigned seed = (unsigned)(uintptr_t)argument;
    while (!atomic_load(&host_ending)) {
        struct timespec pause = {1, rand_r(&seed) % 1000000000};
        nanosleep(&pause, NULL);
        uint64_t begin = host_thread_cpu_ns();
        parse(begin);
        render(begin);
    }
    return NULL;
}

int main(void)
{
    pthread_t workers[THREADS];
    host_begin();
    for (uintptr_t i = 0; i < THREADS; i++)
        workers[i] = host_thread("worker", worker_main, (void *)(i + 1));
    host_say("ready");
    host_wait_for_end();
    for (int i = 0; i < THREADS; i++)
        pthread_join(workers[i], NULL);
    return host_end();
}
