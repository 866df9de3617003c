/* Threads that fork handlers start, in the parent and in the child (pthread_atfork(3)), as gRPC does. The host must see
 * them begin with the signal mask of the thread that forks. The hazard: the agent blocks signals while it forks. */
// cflags: -O2
// record: seconds=1&hz=100
// expect: thread other has stack other_main
#include "host.h"
#include <sys/wait.h>

static void *begun(void *argument)
{
    sigset_t mask;
    HOST_CHECK(pthread_sigmask(SIG_SETMASK, NULL, &mask) == 0);
    for (int number = 1; number < 32; number++)
        HOST_CHECK(sigismember(&mask, number) == (number == SIGUSR2));
    return argument;
}
static void starts_a_thread(void)
{
    pthread_join(host_thread("begun", begun, NULL), NULL);
}
FRAME static void *other_main(void *argument)
{
    while (!atomic_load(&host_ending))
        usleep(1000);
    return argument;
}

int main(void)
{
    host_begin();
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, SIGUSR2);
    HOST_CHECK(pthread_sigmask(SIG_BLOCK, &one, NULL) == 0);
    HOST_CHECK(pthread_atfork(NULL, starts_a_thread, starts_a_thread) == 0);
    pthread_t other = host_thread("other", other_main, NULL);
    for (int round = 0; round < 10; round++) {
        int status = 0;
        pid_t child = fork();
        if (child == 0)
            _exit(7);
        HOST_CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 7);
    }
    host_say("ready");
    host_wait_for_end();
    pthread_join(other, NULL);
    return host_end();
}
