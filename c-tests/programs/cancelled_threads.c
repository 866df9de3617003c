/* Threads that are cancelled right when they go to sleep, in calls that wait for ever. The host must see each of them
 * end. The hazard: the agent's signal comes between the cancellation and the wait, and the thread waits for ever. (The
 * handler of glibc's own signal does nothing if it runs after a call was cut short. Since 2.41 the EINTR of that call
 * makes the thread check whether it is being cancelled.) */
// cflags: -O2
// record: samples=4000&hz=2000
// expect: samples >= 4000
// record: samples=8000&hz=2000&mode=cpu
// expect: samples >= 100
#include "host.h"

#include <poll.h>
#include <semaphore.h>
#include <sys/epoll.h>
#include <sys/socket.h>

enum { POLL, EPOLL, SEMAPHORE, SLEEP, RECEIVE, KINDS };

struct waiter {
    int kind;
    atomic_bool computed;
};

static sem_t nothing;
static int epoll, pair[2];
static volatile uint64_t sink;

FRAME static void compute(int rounds)
{
    for (int i = 0; i < rounds; i++)
        sink++;
}
static void *wait_for_ever(void *argument)
{
    struct waiter *self = argument;
    const struct timespec long_time = {1000, 0};
    struct epoll_event event;
    char byte;
    compute(400000); /* longer than from one tick to the next: the thread has been seen */
    atomic_store(&self->computed, true);
    switch (self->kind) {
    case POLL: poll(NULL, 0, -1); break;
    case EPOLL: epoll_wait(epoll, &event, 1, -1); break;
    case SEMAPHORE: sem_wait(&nothing); break;
    case SLEEP: nanosleep(&long_time, NULL); break;
    case RECEIVE: recv(pair[0], &byte, 1, 0); break;
    }
    return NULL;
}
/* Cancels thread after thread, each a little later behind the moment when it goes to sleep. */
static void *cancels(void *argument)
{
    struct waiter waiter = {.kind = 0};
    for (int round = 0; !atomic_load(&host_ending); round++) {
        void *result;
        waiter.kind = round % KINDS;
        atomic_store(&waiter.computed, false);
        pthread_t thread = host_thread("waiter", wait_for_ever, &waiter);
        while (!atomic_load(&waiter.computed))
            ;
        compute(round * 7 % 4000);
        HOST_CHECK(pthread_cancel(thread) == 0);
        HOST_CHECK(pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED);
    }
    return argument;
}

int main(void)
{
    pthread_t threads[2];
    host_begin();
    HOST_CHECK(sem_init(&nothing, 0, 0) == 0);
    HOST_CHECK((epoll = epoll_create1(0)) >= 0);
    HOST_CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    for (int i = 0; i < 2; i++)
        threads[i] = host_thread("cancels", cancels, NULL);
    host_say("ready");
    host_wait_for_end();
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    return host_end();
}
