/* The first thread ends before the others, by pthread_exit(3). The host must end when the last of the program's threads
 * does, with all that its exit handlers write, also when the socket's file is gone. The hazard: a thread of the agent's
 * keeps the process alive, or the exit handlers run where no signal of the program's arrives. The first argument is the file to write. */
// cflags: -O2
#include "host.h"

static FILE *file;

static void *worker_main(void *argument)
{
    host_wait_for_end();
    fprintf(file, "worker\n");
    return argument;
}
static void at_exit(void)
{
    sigset_t mask;
    HOST_CHECK(pthread_sigmask(SIG_BLOCK, NULL, &mask) == 0);
    HOST_CHECK(sigismember(&mask, SIGALRM) == 0 && sigismember(&mask, SIGTERM) == 0 && sigismember(&mask, SIGUSR1) == 1);
    fprintf(file, "exit\n");
    host_say(fflush(file) == 0 ? "ok" : "failed: fflush");
}

int main(int count, char **arguments)
{
    HOST_CHECK(count == 2);
    host_begin();
    file = fopen(arguments[1], "w");
    HOST_CHECK(file != NULL);
    fprintf(file, "main\n");
    atexit(at_exit);
    sigset_t mask;
    sigemptyset(&mask);
    sigaddset(&mask, SIGUSR1);
    HOST_CHECK(pthread_sigmask(SIG_SETMASK, &mask, NULL) == 0);
    host_thread("worker", worker_main, NULL);
    host_say("ready");
    pthread_exit(NULL);
}
