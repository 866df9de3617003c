/* Threads that poll without waiting. The host must see each poll return 0. The hazard: the kernel ends such a call with
 * EINTR when a signal comes meanwhile, though there was nothing to interrupt; a program that handles no signal may take
 * that for the end. */
// cflags: -O2
// record: samples=3000&hz=2000
// expect: samples >= 6000
// expect: every sample of poller is complete
#include "host.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/select.h>

static int pipes[2];
static atomic_long rounds;

FRAME static void ask(void)
{
    struct pollfd end = {.fd = pipes[0], .events = POLLIN};
    const struct timespec none = {0, 0};
    struct timeval nothing = {0, 0};
    fd_set set;
    HOST_CHECK(poll(&end, 1, 0) == 0);
    HOST_CHECK(ppoll(&end, 1, &none, NULL) == 0);
    FD_ZERO(&set);
    FD_SET(pipes[0], &set);
    HOST_CHECK(select(pipes[0] + 1, &set, NULL, NULL, &nothing) == 0);
    FD_SET(pipes[0], &set);
    HOST_CHECK(pselect(pipes[0] + 1, &set, NULL, NULL, &none, NULL) == 0);
    atomic_fetch_add(&rounds, 1);
}
FRAME static void *poller_main(void *argument)
{
    while (!atomic_load(&host_ending))
        ask();
    NOT_A_TAIL_CALL();
    return argument;
}

int main(void)
{
    pthread_t pollers[2];
    host_begin();
    HOST_CHECK(pipe2(pipes, O_CLOEXEC) == 0);
    for (int i = 0; i < 2; i++)
        pollers[i] = host_thread("poller", poller_main, NULL);
    while (atomic_load(&rounds) == 0)
        sched_yield();
    host_say("ready");
    host_wait_for_end();
    for (int i = 0; i < 2; i++)
        pthread_join(pollers[i], NULL);
    return host_end();
}
