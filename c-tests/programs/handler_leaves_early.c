/* A thread that waits in poll(2) for a signal. The handler first uninstalls itself, and then works for 3 ms with all
 * signals blocked. The host must see each wait end with EINTR. The hazard: the agent's signal comes while the handler
 * works, is delivered when the handler has returned, and the wait does not end. The program has no handler when its
 * recording begins. */
// cflags: -O2
// record: samples=3000&hz=2000
// expect: samples >= 3000
#include "host.h"

#include <poll.h>
#include <signal.h>

static atomic_int caught;

static void leave(int number)
{
    struct timespec start, now;
    signal(number, SIG_DFL);
    clock_gettime(CLOCK_MONOTONIC, &start);
    do
        clock_gettime(CLOCK_MONOTONIC, &now);
    while ((now.tv_sec - start.tv_sec) * 1000000000L + now.tv_nsec - start.tv_nsec < 3000000);
    atomic_fetch_add(&caught, 1);
}
static void *waiter_main(void *argument)
{
    host_arrive();
    while (!atomic_load(&host_ending)) {
        struct sigaction action = {.sa_handler = leave};
        sigfillset(&action.sa_mask);
        HOST_CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
        atomic_store((atomic_int *)argument, 1);
        HOST_CHECK(poll(NULL, 0, -1) == -1 && errno == EINTR);
    }
    return NULL;
}

int main(void)
{
    atomic_int waits = 0;
    const struct timespec begin = {0, 400000000}, moment = {0, 30000000};
    host_begin();
    host_say("ready");
    nanosleep(&begin, NULL); /* the recording begins */
    pthread_t waiter = host_thread("waiter", waiter_main, &waits);
    host_wait_until_arrived(1);
    for (int expected = 1; expected <= 8; expected++) {
        while (!atomic_exchange(&waits, 0))
            nanosleep(&moment, NULL);
        nanosleep(&moment, NULL); /* it waits, and a look has seen the handler */
        HOST_CHECK(pthread_kill(waiter, SIGUSR1) == 0);
        for (int tries = 0; atomic_load(&caught) < expected && tries < 100; tries++)
            nanosleep(&moment, NULL);
        HOST_CHECK(atomic_load(&caught) == expected);
    }
    host_wait_for_end();
    while (!atomic_exchange(&waits, 0))
        nanosleep(&moment, NULL);
    nanosleep(&moment, NULL);
    HOST_CHECK(pthread_kill(waiter, SIGUSR1) == 0);
    pthread_join(waiter, NULL);
    return host_end();
}
