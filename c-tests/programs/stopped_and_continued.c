/* Job control: the process is stopped and continued again and again (SIGSTOP, SIGCONT) while it is recorded. The host
 * must continue each time, and its handler must get SIGCONT. The hazard: the agent's signal comes at a stop or at a
 * continuation. */
// cflags: -O2
// record: seconds=2&hz=500
// expect: thread burner has stack burner_main
#include "burner.h"
#include <sys/wait.h>

static atomic_long continued;

static void on_continue(int number)
{
    (void)number;
    atomic_fetch_add(&continued, 1);
}

int main(void)
{
    int alive[2], status = 0;
    host_begin();
    HOST_CHECK(pipe(alive) == 0);
    signal(SIGCONT, on_continue);
    pid_t host = getpid(), stopper = fork();
    HOST_CHECK(stopper >= 0);
    if (stopper == 0) {
        const struct timespec while_stopped = {0, 2000000}, between = {0, 10000000};
        close(alive[1]);
        for (int i = 0; i < 1000 && getppid() == host; i++) {
            kill(host, SIGSTOP);
            nanosleep(&while_stopped, NULL);
            kill(host, SIGCONT);
            nanosleep(&between, NULL);
        }
        _exit(0);
    }
    pthread_t burner = burner_begin();
    while (atomic_load(&continued) == 0)
        NOT_A_TAIL_CALL();
    host_say("ready");
    char byte;
    ssize_t got;
    do
        got = read(STDIN_FILENO, &byte, 1);
    while (got < 0 && errno == EINTR);
    kill(stopper, SIGKILL);
    HOST_CHECK(waitpid(stopper, &status, 0) == stopper);
    kill(host, SIGCONT);
    atomic_store(&host_ending, true);
    pthread_join(burner, NULL);
    return host_end();
}
