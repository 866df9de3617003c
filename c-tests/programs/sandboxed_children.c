/* A program that starts other programs under a filter which kills for calls that they do not make, and these start others.
 * The host must see each of them end by itself. The hazard: the library is loaded into them, and makes such a call. */
// cflags: -O2
// record: seconds=2&hz=500
// expect: samples >= 1
#include "host.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/wait.h>

static volatile uint64_t sink;

static void sandbox(void)
{
#define KILL(call) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        KILL(SYS_socket), KILL(SYS_timer_create), KILL(SYS_clone3), KILL(SYS_epoll_create1), KILL(SYS_gettid),
        KILL(SYS_close_range), KILL(SYS_statx), KILL(SYS_process_vm_readv), KILL(SYS_getdents64), KILL(SYS_unlink),
        KILL(SYS_madvise),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = sizeof filter / sizeof *filter, .filter = filter};
    HOST_CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    HOST_CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
}
/* Starts this program again, with these arguments. */
static void start(const char *name, const char *how, int status)
{
    int found = 0;
    pid_t child = fork();
    HOST_CHECK(child >= 0);
    if (child == 0) {
        if (strcmp(how, "parent") == 0)
            sandbox();
        execl("/proc/self/exe", name, how, NULL);
        _exit(127);
    }
    HOST_CHECK(waitpid(child, &found, 0) == child && WIFEXITED(found) && WEXITSTATUS(found) == status);
}

int main(int count, char **arguments)
{
    if (count == 2) {
        for (long i = 0; i < 20000000; i++)
            sink++;
        if (strcmp(arguments[1], "parent") == 0)
            start(arguments[0], "child", 4);
        return strcmp(arguments[1], "parent") == 0 ? 3 : 4;
    }
    host_begin();
    host_say("ready");
    for (int round = 0; round < 10; round++)
        start(arguments[0], "parent", 3);
    host_wait_for_end();
    return host_end();
}
