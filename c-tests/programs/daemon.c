/* A daemon: forks twice, leaves its session and its directory, closes every descriptor and opens its own. The process that
 * remains has a socket of its own, gets the numbers of descriptors that it counts on, and is profiled. */
// cflags: -O2
#include "host.h"
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>

static volatile uint64_t sink;

FRAME static void daemon_work(void)
{
    while (!atomic_load(&host_ending))
        sink++;
}
FRAME static void *daemon_main(void *argument)
{
    daemon_work();
    NOT_A_TAIL_CALL();
    return argument;
}
static void leave_parent(void)
{
    pid_t child = fork();
    HOST_CHECK(child >= 0);
    if (child == 0)
        return;
    int status = 0;
    HOST_CHECK(waitpid(child, &status, 0) == child);
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}

int main(void)
{
    int ended[2];
    host_begin();
    HOST_CHECK(pipe(ended) == 0);
    leave_parent();
    HOST_CHECK(setsid() > 0);
    pid_t child = fork();
    HOST_CHECK(child >= 0);
    if (child != 0) {
        /* Without the write end: it ends when the daemon does, so that the runner waits for it. */
        char byte;
        close(ended[1]);
        _exit(read(ended[0], &byte, 1) == 1 && byte == 'k' ? 0 : 1);
    }
    host_begin();
    HOST_CHECK(chdir("/") == 0);
    umask(0);
    HOST_CHECK(dup2(ended[1], 2) == 2);
    /* As closefrom(3): closes every descriptor, the agent's too if there are any. */
    for (int fd = 3; fd < 1024; fd++)
        close(fd);
    int first = open("/dev/null", O_RDWR);
    int second = open("/dev/null", O_RDWR);
    HOST_CHECK(first == 3 && second == 4);
    pthread_t worker = host_thread("worker", daemon_main, NULL);
    while (sink == 0)
        NOT_A_TAIL_CALL();
    host_say("daemon %d", (int)getpid());
    host_say("ready");
    host_wait_for_end();
    pthread_join(worker, NULL);
    HOST_CHECK(fcntl(3, F_GETFD) == 0 && fcntl(4, F_GETFD) == 0 && fcntl(5, F_GETFD) < 0);
    int status = host_end();
    HOST_CHECK(write(2, "k", 1) == 1);
    return status;
}
