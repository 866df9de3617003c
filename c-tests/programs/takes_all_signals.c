/* All signals are blocked in all threads, and each that is sent to the process is taken by sigtimedwait(3), as daemons do. The
 * hazard: a thread of a library that does not block one takes it, and its default action ends the program. SIGSYS is left out:
 * a filter may raise it at the agent's system calls. */
// cflags: -O2
// record: samples=200&hz=200
// expect: every sample of burner has stack burner_main;work
#include "burner.h"

static void takes(int number, const sigset_t *all)
{
    const struct timespec bound = {10, 0};
    HOST_CHECK(kill(getpid(), number) == 0);
    HOST_CHECK(sigtimedwait(all, NULL, &bound) == number);
}

int main(void)
{
    sigset_t all;
    host_begin();
    sigfillset(&all);
    sigdelset(&all, SIGALRM);
    HOST_CHECK(pthread_sigmask(SIG_SETMASK, &all, NULL) == 0);
    pthread_t burner = burner_begin();
    host_say("ready");
    for (int round = 0; round < 3; round++)
        for (int number = 1; number <= SIGRTMAX; number++)
            if (sigismember(&all, number) == 1 && number != SIGKILL && number != SIGSTOP && number != SIGSYS)
                takes(number, &all);
    host_wait_for_end();
    pthread_join(burner, NULL);
    return host_end();
}
