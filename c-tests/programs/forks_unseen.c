/* Children that run no fork handlers: made by a raw clone(2), as by _Fork(3), and one that shares its parent's memory
 * under its own process id. They compute, end in every way there is, and fork by fork(3) in turn; the parent is recorded meanwhile. */
// cflags: -O2
// record: samples=1000&hz=1000
// expect: every sample of burner has stack burner_main;work
#include "burner.h"
#include <sched.h>
#include <sys/wait.h>

static void compute(void)
{
    for (volatile int i = 0; i < 1000000; i++) {}
}
/* What a child does, and the status it ends with. */
static int lives(int kind)
{
    compute();
    switch (kind % 4) {
    case 0:
        _exit(7);
    case 1:
        exit(7);
    case 2:
        execl("/bin/sh", "sh", "-c", "exit 7", (char *)NULL);
        _exit(1);
    default: {
        int status;
        pid_t child = fork();
        if (child == 0)
            _exit(7);
        _exit(child > 0 && waitpid(child, &status, 0) == child ? WEXITSTATUS(status) : 1);
    }
    }
}
static int shares(void *argument)
{
    (void)argument;
    compute();
    _exit(7);
}
static bool ended_well(pid_t child)
{
    int status;
    return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 7;
}

int main(void)
{
    static char stack[64 << 10] __attribute__((aligned(16)));
    host_begin();
    pthread_t burner = burner_begin();
    host_say("ready");
    for (int round = 0; round < 20; round++) {
        for (int kind = 0; kind < 4; kind++) {
            pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
            if (child == 0)
                _exit(lives(kind));
            HOST_CHECK(ended_well(child));
        }
        HOST_CHECK(ended_well(clone(shares, stack + sizeof stack, CLONE_VM | SIGCHLD, NULL)));
    }
    host_wait_for_end();
    pthread_join(burner, NULL);
    return host_end();
}
