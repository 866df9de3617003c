/* Threads that wait for handlers of their own. Each sends another one a signal and waits for one, in calls that let the
 * signal in only while they wait (sigsuspend(2), ppoll(2), pselect(2), epoll_pwait(2)). The host must see each call end
 * when the handler has run. The hazard: the agent's signal hides that the handler ran, and the thread waits for a
 * signal that no thread sends. */
// cflags: -O2
// record: samples=1500&hz=1000
// expect: samples >= 1500
#include "host.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/select.h>

#define PAIRS 2

static atomic_bool over;
static atomic_ulong turns[PAIRS];
static pthread_t players[2 * PAIRS];
static __thread volatile sig_atomic_t came;

static void note(int signal)
{
    came = signal;
}
FRAME static void wait_in_sigsuspend(const sigset_t *open)
{
    HOST_CHECK(sigsuspend(open) == -1 && errno == EINTR);
}
FRAME static void wait_in_polls(const sigset_t *open)
{
    static atomic_uint next;
    const struct timespec long_time = {1000, 0};
    struct epoll_event event;
    static int epoll = -1;
    if (epoll == -1)
        epoll = epoll_create1(EPOLL_CLOEXEC);
    unsigned kind = atomic_fetch_add(&next, 1) % 3;
    int result = kind == 0   ? ppoll(NULL, 0, &long_time, open)
                 : kind == 1 ? pselect(0, NULL, NULL, NULL, NULL, open)
                             : epoll_pwait(epoll, &event, 1, -1, open);
    HOST_CHECK(result == -1 && errno == EINTR);
}
static void *play(void *argument)
{
    long self = (long)argument;
    sigset_t open;
    pthread_sigmask(SIG_SETMASK, NULL, &open);
    sigdelset(&open, SIGUSR1);
    host_arrive();
    host_wait_until_arrived(2 * PAIRS + 1); /* main has written `players` */
    while (!atomic_load(&over)) {
        pthread_kill(players[self ^ 1], SIGUSR1);
        while (!came)
            (self / 2 == 0 ? wait_in_sigsuspend : wait_in_polls)(&open);
        came = 0;
        atomic_fetch_add(&turns[self / 2], 1);
    }
    pthread_kill(players[self ^ 1], SIGUSR1);
    return NULL;
}
/* Whether both still have turns: a turn takes a few microseconds. */
static bool goes_on(int pair)
{
    const struct timespec moment = {0, 1000000};
    unsigned long before = atomic_load(&turns[pair]);
    for (int i = 0; i < 10000 && atomic_load(&turns[pair]) < before + 4; i++)
        nanosleep(&moment, NULL);
    return atomic_load(&turns[pair]) >= before + 4;
}

int main(void)
{
    host_begin();
    struct sigaction action = {.sa_handler = note};
    HOST_CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGUSR1);
    HOST_CHECK(pthread_sigmask(SIG_BLOCK, &signals, NULL) == 0);
    for (long i = 0; i < 2 * PAIRS; i++)
        players[i] = host_thread("player", play, (void *)i);
    host_arrive();
    host_wait_until_arrived(2 * PAIRS + 1);
    host_say("ready");
    host_wait_for_end();
    for (int i = 0; i < PAIRS; i++)
        HOST_CHECK(goes_on(i));
    atomic_store(&over, true);
    for (int i = 0; i < 2 * PAIRS; i++)
        pthread_join(players[i], NULL);
    return host_end();
}
