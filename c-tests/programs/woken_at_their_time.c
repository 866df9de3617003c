/* More threads than processors, which compute and wait for a millisecond at a time. They handle no signal, so the host
 * must see no wait fail with EINTR. The hazard: a thread that is woken at the end of its time-out and has to wait for a
 * processor looks as if it ran. A signal then makes its poll(2) fail with EINTR, though its time is over. */
// cflags: -O2
// record: samples=4000&hz=2000
// expect: samples >= 4000
// record: samples=6000&hz=2000&mode=cpu
// expect: samples >= 100
#include "host.h"

#include <poll.h>
#include <sys/epoll.h>

#define THREADS 12

static volatile uint64_t sink;

FRAME static void compute(void)
{
    for (int i = 0; i < 50000; i++)
        sink++;
}
FRAME static void *waits(void *argument)
{
    struct epoll_event event;
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    host_arrive();
    while (!atomic_load(&host_ending)) {
        compute();
        HOST_CHECK(poll(NULL, 0, 1) == 0);
        compute();
        HOST_CHECK(epoll_wait(epoll, &event, 1, 1) == 0);
    }
    return argument;
}

int main(void)
{
    pthread_t threads[THREADS];
    host_begin();
    for (int i = 0; i < THREADS; i++)
        threads[i] = host_thread("waits", waits, NULL);
    host_wait_until_arrived(THREADS);
    host_say("ready");
    host_wait_for_end();
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    return host_end();
}
