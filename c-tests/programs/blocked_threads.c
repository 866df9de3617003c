/* Calls that fail with EINTR after any signal, SA_RESTART or not. Sampled 1000 times
 * a second, none of them may return: a blocked thread must not be signalled. */
// cflags: -O2
// record: samples=1000&hz=1000
// expect: every sample of read has stack read_main;in_read
// expect: every sample of nanosleep has stack nanosleep_main;in_nanosleep
// expect: every sample of poll has stack poll_main;in_poll
// expect: every sample of epoll_wait has stack epoll_wait_main;in_epoll_wait
// expect: every sample of futex has stack futex_main;in_futex
// expect: every sample of sem_timedwait has stack sem_timedwait_main;in_sem_timedwait
// expect: every sample of recv has stack recv_main;in_recv
// expect: every sample of pause has stack pause_main;in_pause
// expect: every sample of * is complete
#include "host.h"
#include <linux/futex.h>
#include <poll.h>
#include <semaphore.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/time.h>

static atomic_int returned;
static int ends[2], sockets[2], queue;
static sem_t never;
static uint32_t word;

/* A thread whose call is made in a frame of its own. None of the calls can succeed,
 * so each return is an interruption. */
#define BLOCKED_IN(call, expression)                                               \
    FRAME static void in_##call(void)                                              \
    {                                                                              \
        host_arrive();                                                             \
        long result = (long)(expression);                                          \
        host_say("%s returned %ld, errno %d", #call, result, errno);               \
        atomic_fetch_add(&returned, 1);                                            \
    }                                                                              \
    FRAME static void *call##_main(void *argument)                                 \
    {                                                                              \
        for (;;) {                                                                 \
            in_##call();                                                           \
            NOT_A_TAIL_CALL();                                                     \
        }                                                                          \
        return argument;                                                           \
    }

static const struct timespec hour = {3600, 0};
static struct timespec in_an_hour;
static char byte;
static struct pollfd wanted;
static struct epoll_event event;

BLOCKED_IN(read, read(ends[0], &byte, 1))
BLOCKED_IN(nanosleep, nanosleep(&hour, NULL))
BLOCKED_IN(poll, poll(&wanted, 1, 3600 * 1000))
BLOCKED_IN(epoll_wait, epoll_wait(queue, &event, 1, 3600 * 1000))
BLOCKED_IN(futex, syscall(SYS_futex, &word, FUTEX_WAIT, 0, &hour, NULL, 0))
BLOCKED_IN(sem_timedwait, sem_timedwait(&never, &in_an_hour))
BLOCKED_IN(recv, recv(sockets[0], &byte, 1, 0))
BLOCKED_IN(pause, pause())

int main(void)
{
    host_begin();
    const struct timeval hour_of_receive = {3600, 0};
    HOST_CHECK(pipe(ends) == 0);
    HOST_CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0);
    HOST_CHECK(setsockopt(sockets[0], SOL_SOCKET, SO_RCVTIMEO, &hour_of_receive,
                          sizeof hour_of_receive) == 0);
    HOST_CHECK((queue = epoll_create1(0)) >= 0);
    sem_init(&never, 0, 0);
    wanted = (struct pollfd){.fd = ends[0], .events = POLLIN};
    clock_gettime(CLOCK_REALTIME, &in_an_hour);
    in_an_hour.tv_sec += 3600;

    host_thread("read", read_main, NULL);
    host_thread("nanosleep", nanosleep_main, NULL);
    host_thread("poll", poll_main, NULL);
    host_thread("epoll_wait", epoll_wait_main, NULL);
    host_thread("futex", futex_main, NULL);
    host_thread("sem_timedwait", sem_timedwait_main, NULL);
    host_thread("recv", recv_main, NULL);
    host_thread("pause", pause_main, NULL);
    host_wait_until_blocked(8);
    host_say("ready");
    host_wait_for_end();
    HOST_CHECK(atomic_load(&returned) == 0);
    return host_end();
}
