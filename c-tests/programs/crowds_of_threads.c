/* Forty threads at once that compute for 0.2 ms each and end, then the thread that made them computes for 30 ms: 8 of 38 ms are theirs. When a sweep
 * sees such threads, most wait for a CPU; when they have ended, nobody can read their clocks. In wall mode, too, they have their running time. */
// cflags: -O2
// record: seconds=20&hz=100&mode=wall&state=running
// expect: samples >= 30
// expect: share of * with stack request;parse >= 0.08
// expect: share of * with stack request;parse <= 0.38
#include "host.h"
#include <sys/prctl.h>

enum { THREADS = 40, PARSE_NS = 200000, ROUND_NS = 30000000 };

static volatile uint64_t sink;

FRAME static void parse(void)
{
    while (host_thread_cpu_ns() < PARSE_NS)
        sink++;
}
FRAME static void *request(void *argument)
{
    prctl(PR_SET_NAME, "request");
    parse();
    return argument;
}
FRAME static void *server_main(void *argument)
{
    pthread_t threads[THREADS];
    while (!atomic_load(&host_ending)) {
        for (int i = 0; i < THREADS; i++)
            HOST_CHECK(pthread_create(&threads[i], NULL, request, NULL) == 0);
        for (int i = 0; i < THREADS; i++)
            pthread_join(threads[i], NULL);
        for (uint64_t from = host_thread_cpu_ns(); host_thread_cpu_ns() - from < ROUND_NS;)
            sink++;
        usleep(60000);
    }
    return argument;
}

int main(void)
{
    host_begin();
    pthread_t server = host_thread("server", server_main, NULL);
    host_say("ready");
    host_wait_for_end();
    pthread_join(server, NULL);
    return host_end();
}
