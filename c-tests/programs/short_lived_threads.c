/* A thread for each request, which computes for 6 ms and ends: at 100 Hz most of these threads are never hit. The samples of the others stand for
 * all: the functions are blamed, not "[not sampled]" or "ended-threads". */
// cflags: -O2
// record: seconds=5&hz=100&mode=cpu
// expect: seconds without a stack <= 1
// expect: share of * with stack request;parse >= 0.15
// expect: share of * with stack request;render >= 0.15
#include "host.h"

static volatile uint64_t sink;

FRAME static void parse(void)
{
    while (host_thread_cpu_ns() < 4000000)
        sink++;
}
FRAME static void render(void)
{
    while (host_thread_cpu_ns() < 6000000)
        sink++;
}
FRAME static void *request(void *argument)
{
    parse();
    render();
    NOT_A_TAIL_CALL();
    return argument;
}
FRAME static void *server_main(void *argument)
{
    while (!atomic_load(&host_ending)) {
        pthread_t thread;
        HOST_CHECK(pthread_create(&thread, NULL, request, argument) == 0);
        HOST_CHECK(pthread_join(thread, NULL) == 0);
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
