/* A thread for each request, which computes for 2 ms and ends before a sweep has seen it: half of these threads never run at a tick of the
 * kernel. They are hit from their first moment on, so the function at their beginning has its share, and the samples represent all threads:
 * functions are blamed, not "[not sampled]" or "ended-threads". Each says what it is called, then ends in another way: it returns, calls
 * pthread_exit(3) or is cancelled, from below its first function. What a thread returns is what its creator gets. */
// cflags: -O2 -fexceptions
// record: seconds=20&hz=100&mode=cpu
// expect: samples >= 80
// expect: seconds without a stack <= 1
// expect: share of request with stack request;parse >= 0.33
// expect: share of request with stack request;parse <= 0.67
// expect: share of request with stack request;render >= 0.33
// expect: every sample of request is complete
#include "host.h"
#include <sys/prctl.h>

enum { WAYS = 3 };

static volatile uint64_t sink;
static atomic_ulong cleaned;

FRAME static void parse(void)
{
    while (host_thread_cpu_ns() < 1000000)
        sink++;
}
FRAME static void render(void)
{
    while (host_thread_cpu_ns() < 2000000)
        sink++;
}
static void count(void *number)
{
    atomic_fetch_add(&cleaned, *(unsigned long *)number);
}
FRAME static void end(void *argument)
{
    if ((unsigned long)argument % WAYS == 1)
        pthread_exit(argument);
    if ((unsigned long)argument % WAYS == 2) {
        pthread_cancel(pthread_self());
        pthread_testcancel();
    }
}
FRAME static void *request(void *argument)
{
    unsigned long one = 1;
    prctl(PR_SET_NAME, "request");
    pthread_cleanup_push(count, &one);
    parse();
    render();
    end(argument);
    pthread_cleanup_pop(1);
    return argument;
}
FRAME static void *server_main(void *argument)
{
    unsigned long number = 0;
    for (; !atomic_load(&host_ending); number++) {
        pthread_t thread;
        void *result;
        HOST_CHECK(pthread_create(&thread, NULL, request, (void *)number) == 0);
        HOST_CHECK(pthread_join(thread, &result) == 0);
        HOST_CHECK(result == (number % WAYS == 2 ? PTHREAD_CANCELED : (void *)number));
    }
    HOST_CHECK(atomic_load(&cleaned) == number);
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
