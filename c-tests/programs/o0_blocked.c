/* Unoptimised code with frame pointers, blocked in the usual calls: every sample is
 * complete and shows the call's whole chain, and no thread runs because of it. */
// cflags: -O0 -fno-omit-frame-pointer
// record: samples=200&hz=200
// expect: every sample of sleeper has stack sleeper_main;sleep_long
// expect: every sample of sleeper is complete
// expect: every sample of reader has stack reader_main;read_pipe
// expect: every sample of reader is complete
// expect: every sample of poller has stack poller_main;poll_pipe
// expect: every sample of poller is complete
// expect: every sample of waiter has stack waiter_main;wait_condition
// expect: every sample of waiter is complete
// expect: every sample of pusher has stack pusher_main;push_argument
// expect: every sample of pusher is complete
// expect: thread main has stack main;host_wait_for_end;host_line
// expect: every sample of main is complete
#include "host.h"
#include <linux/futex.h>
#include <poll.h>
#include <sys/syscall.h>

static int ends[2];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;

FRAME static void sleep_long(void)
{
    const struct timespec long_time = {3600, 0};
    host_arrive();
    nanosleep(&long_time, NULL);
    HOST_CHECK(!"a sleeping thread was woken");
}
FRAME static void *sleeper_main(void *argument)
{
    sleep_long();
    return argument;
}
FRAME static void read_pipe(void)
{
    char byte;
    host_arrive();
    ssize_t got = read(ends[0], &byte, 1);
    HOST_CHECK(got > 0 && !"a reading thread was woken");
}
FRAME static void *reader_main(void *argument)
{
    read_pipe();
    return argument;
}
FRAME static void poll_pipe(void)
{
    struct pollfd wanted = {.fd = ends[0], .events = POLLIN};
    host_arrive();
    poll(&wanted, 1, -1);
    HOST_CHECK(!"a polling thread was woken");
}
FRAME static void *poller_main(void *argument)
{
    poll_pipe();
    return argument;
}
FRAME static void wait_condition(void)
{
    pthread_mutex_lock(&mutex);
    host_arrive();
    for (;;)
        pthread_cond_wait(&condition, &mutex);
}
FRAME static void *waiter_main(void *argument)
{
    wait_condition();
    return argument;
}
FRAME static void push_argument(void)
{
    /* Regression: the seventh argument lies on the stack, so that the frame is larger than its first instructions say: threads
     * of Java that waited for the end of a collection had no caller. */
    static int word;
    host_arrive();
    for (;;)
        syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
}
FRAME static void *pusher_main(void *argument)
{
    push_argument();
    return argument;
}

int main(void)
{
    host_begin();
    HOST_CHECK(pipe(ends) == 0);
    host_thread("sleeper", sleeper_main, NULL);
    host_thread("reader", reader_main, NULL);
    host_thread("poller", poller_main, NULL);
    host_thread("waiter", waiter_main, NULL);
    host_thread("pusher", pusher_main, NULL);
    host_wait_until_blocked(5);
    host_say("ready");
    host_wait_for_end();
    return host_end();
}
