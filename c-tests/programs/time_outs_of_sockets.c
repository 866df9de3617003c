/* More threads than processors, which wait a millisecond for something to receive, or sleep. They handle no signal, so
 * the host must see no time-out or sleep end with EINTR, and none end early. The hazard: a thread that is woken at the
 * end of its time-out and has to wait for a processor looks as if it ran. A signal then makes its call fail with EINTR,
 * though its time is over, or though something has come. */
// cflags: -O2
// record: samples=1000&hz=2000
// expect: samples >= 1000
// record: samples=1500&hz=2000&mode=cpu
// expect: samples >= 15
#include "host.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#define GROUPS 2
#define WAIT_NS 1000000

static volatile uint64_t sink;

FRAME static void compute(void)
{
    for (int i = 0; i < 50000; i++)
        sink++;
}
static int64_t now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * (int64_t)1000000000 + time.tv_nsec;
}
static void bound(int socket, int64_t ns)
{
    struct timeval time = {ns / 1000000000, ns / 1000 % 1000000};
    HOST_CHECK(setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time) == 0);
}
/* Nothing came, and not before its time. (Time-outs of sockets are counted in ticks of the kernel, of which the first has begun.) */
static void check_over(int64_t began, int result)
{
    HOST_CHECK(result == -1 && errno == EAGAIN);
    HOST_CHECK(now_ns() - began >= WAIT_NS / 2);
}
FRAME static void *receives_nothing(void *argument)
{
    int ends[2], listening = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    char byte;
    struct iovec part = {&byte, 1};
    struct mmsghdr messages = {.msg_hdr = {.msg_iov = &part, .msg_iovlen = 1}};
    HOST_CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    HOST_CHECK(bind(listening, (struct sockaddr *)&here, sizeof here) == 0 && listen(listening, 1) == 0);
    bound(ends[0], WAIT_NS);
    bound(listening, WAIT_NS);
    host_arrive();
    while (!atomic_load(&host_ending)) {
        compute();
        int64_t began = now_ns();
        check_over(began, recv(ends[0], &byte, 1, 0));
        compute();
        began = now_ns();
        check_over(began, recvmsg(ends[0], &messages.msg_hdr, 0));
        compute();
        began = now_ns();
        check_over(began, recvmmsg(ends[0], &messages, 1, 0, NULL));
        compute();
        began = now_ns();
        check_over(began, accept(listening, NULL, NULL));
    }
    return argument;
}
FRAME static void *sleeps(void *argument)
{
    host_arrive();
    while (!atomic_load(&host_ending)) {
        const struct timespec time = {0, WAIT_NS};
        int64_t began = now_ns();
        HOST_CHECK(nanosleep(&time, NULL) == 0);
        HOST_CHECK(now_ns() - began >= WAIT_NS);
        compute();
        HOST_CHECK(clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL) == 0);
        compute();
    }
    return argument;
}
/* Two that send a byte to and fro, each with a time-out that is never reached. */
FRAME static void *receives(void *argument)
{
    int end = (int)(intptr_t)argument;
    char byte = 'x';
    bound(end, 5 * (int64_t)1000000000);
    host_arrive();
    HOST_CHECK(send(end, &byte, 1, MSG_NOSIGNAL) == 1);
    for (int n; (n = recv(end, &byte, 1, 0)) != 0;) {
        HOST_CHECK(n > 0);
        if (atomic_load(&host_ending)) {
            shutdown(end, SHUT_RDWR);
        } else {
            compute();
            if (send(end, &byte, 1, MSG_NOSIGNAL) < 0)
                break; /* the other one has ended */
        }
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[GROUPS * 4];
    host_begin();
    for (int i = 0; i < GROUPS; i++) {
        int ends[2];
        HOST_CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
        threads[4 * i] = host_thread("nothing", receives_nothing, NULL);
        threads[4 * i + 1] = host_thread("sleeps", sleeps, NULL);
        threads[4 * i + 2] = host_thread("receives", receives, (void *)(intptr_t)ends[0]);
        threads[4 * i + 3] = host_thread("receives", receives, (void *)(intptr_t)ends[1]);
    }
    host_wait_until_arrived(GROUPS * 4);
    host_say("ready");
    host_wait_for_end();
    for (int i = 0; i < GROUPS * 4; i++)
        pthread_join(threads[i], NULL);
    return host_end();
}
