/* Process 1 of a container makes children by clone(2) that are process 1 of name spaces of their own, as sandboxes do. Each
 * makes a call before which an agent with threads would stop, and ends in one way. The hazard: the child takes the parent's agent
 * for its own, waits for threads that it does not have, and removes the parent's socket. */
// cflags: -O2
#include "burner.h"
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>

static int sets_up_a_sandbox(void *argument)
{
    bool exits = *(char *)argument != 0;
    int result = exits ? unshare(CLONE_NEWUSER) : prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0);
    if (result == 0 && exits)
        exit(7);
    _exit(result == 0 ? 7 : 1);
}

int main(void)
{
    static char stack[64 << 10] __attribute__((aligned(16)));
    static char kinds[] = {0, 1};
    host_begin();
    pthread_t burner = burner_begin();
    host_say("ready");
    char line[64];
    HOST_CHECK(host_line(line, sizeof line));
    HOST_CHECK(getpid() == 1);
    for (int kind = 0; kind < 2; kind++) {
        int status;
        pid_t child = clone(sets_up_a_sandbox, stack + sizeof stack, CLONE_NEWPID | SIGCHLD, &kinds[kind]);
        HOST_CHECK(child > 0 && waitpid(child, &status, 0) == child);
        HOST_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
    }
    host_say("children done");
    host_wait_for_end();
    pthread_join(burner, NULL);
    return host_end();
}
