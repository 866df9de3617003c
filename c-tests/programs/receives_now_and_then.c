/* Threads that block all signals and let them through again, all the time, and take the signals that came meanwhile: by
 * sigtimedwait(2), by a signalfd(2), or by neither. The host must receive those signals only that were sent to it: here
 * none. What the threads compute while they block all signals must be recorded, too. The hazard: the agent requests a
 * sample while a thread lets signals through, and the signal comes after the thread has blocked it. */
// cflags: -O2
// record: seconds=4&hz=500&mode=cpu
// expect: thread toggling has stack toggling_main;masked
// expect: thread toggling has stack toggling_main;unmasked
// expect: samples >= 50
#include "host.h"
#include <signal.h>
#include <sys/signalfd.h>

static sigset_t all;

FRAME static void unmasked(void)
{
    for (volatile int i = 0; i < 400000; i++) {}
}
FRAME static void masked(void)
{
    for (volatile int i = 0; i < 1600000; i++) {}
}
static void *toggling_main(void *by_signalfd)
{
    const struct timespec at_once = {0, 0};
    struct signalfd_siginfo info;
    sigset_t before, pending;
    int urgent[] = {SIGURG, SIGWINCH}, signals = signalfd(-1, &all, SFD_NONBLOCK | SFD_CLOEXEC);
    HOST_CHECK(signals >= 0);
    while (!atomic_load(&host_ending)) {
        unmasked();
        pthread_sigmask(SIG_SETMASK, &all, &before);
        masked();
        HOST_CHECK(sigpending(&pending) == 0);
        for (int i = 0; i < 2; i++)
            HOST_CHECK(!sigismember(&pending, urgent[i]) || !"a signal is pending that nobody sent");
        if (by_signalfd)
            HOST_CHECK(read(signals, &info, sizeof info) < 0 || !"a signal came that nobody sent");
        else
            HOST_CHECK(sigtimedwait(&all, NULL, &at_once) < 0 || !"a signal came that nobody sent");
        sigprocmask(SIG_SETMASK, &before, NULL);
    }
    return NULL;
}

int main(void)
{
    pthread_t toggling[2];
    host_begin();
    sigfillset(&all);
    sigdelset(&all, SIGALRM);
    for (int i = 0; i < 2; i++)
        toggling[i] = host_thread("toggling", toggling_main, i == 0 ? &all : NULL);
    host_say("ready");
    host_wait_for_end();
    for (int i = 0; i < 2; i++)
        pthread_join(toggling[i], NULL);
    return host_end();
}
