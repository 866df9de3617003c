/* A thread that enters a filter which kills for calls that only the agent makes, and gets a descriptor for it
 * (SECCOMP_FILTER_FLAG_NEW_LISTENER). It forks, and so does a thread that it starts. The host must see each child end by
 * itself. The hazard: the agent starts in such a child. */
// cflags: -O2
// record: seconds=2&hz=500
// expect: samples >= 1
#include "host.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/wait.h>

static void sandbox(void)
{
#define KILL(call) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        KILL(SYS_socket), KILL(SYS_timer_create), KILL(SYS_close_range), KILL(SYS_epoll_create1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = sizeof filter / sizeof *filter, .filter = filter};
    HOST_CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    HOST_CHECK(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program) > 0);
}
static void *forks(void *argument)
{
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        usleep(200000); /* long enough for an agent to start */
        _exit(7);
    }
    HOST_CHECK(waitpid(child, &status, 0) == child);
    errno = status;
    HOST_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
    return argument;
}
static void *sandboxed(void *argument)
{
    sandbox();
    forks(NULL);
    for (int round = 0; round < 3; round++)
        pthread_join(host_thread("forks", forks, NULL), NULL);
    return argument;
}

int main(void)
{
    host_begin();
    host_say("ready");
    usleep(300000); /* there is an agent, and a recording */
    pthread_join(host_thread("sandboxed", sandboxed, NULL), NULL);
    host_wait_for_end();
    return host_end();
}
