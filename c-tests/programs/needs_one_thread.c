/* Calls that only a process with one thread may make: a user name space of its own (unshare(2)), its own time, and entering
 * name spaces (setns(2)). They succeed or fail as without a profiler, and the process is profiled afterwards. */
// cflags: -O2
#include "host.h"
#include <fcntl.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>

static volatile uint64_t sink;

FRAME static void late_work(void)
{
    while (!atomic_load(&host_ending))
        sink++;
}
FRAME static void *late_main(void *argument)
{
    late_work();
    NOT_A_TAIL_CALL();
    return argument;
}
static int errno_of(int result)
{
    return result == 0 ? 0 : errno;
}
/* What the calls say in children, which have one thread: theirs. */
static int in_child(int (*call)(void))
{
    int status = 0;
    pid_t child = fork();
    HOST_CHECK(child >= 0);
    if (child == 0)
        _exit(call());
    HOST_CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status));
    return WEXITSTATUS(status);
}
static int new_user(void)
{
    return errno_of(unshare(CLONE_NEWUSER));
}
/* The agent must end without a descriptor of the host's. */
static int new_user_without_descriptors(void)
{
    struct rlimit limit = {64, 64};
    HOST_CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    while (dup(0) >= 0)
        NOT_A_TAIL_CALL();
    return new_user();
}
static int new_mounts(void)
{
    return errno_of(unshare(CLONE_NEWNS));
}
static int enter_mounts(void)
{
    int space = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
    return errno_of(setns(space, CLONE_NEWNS));
}
static int enter_user(void)
{
    int space = open("/proc/self/ns/user", O_RDONLY | O_CLOEXEC);
    return errno_of(setns(space, CLONE_NEWUSER));
}
static int own_signals(void)
{
    return errno_of(unshare(CLONE_SIGHAND));
}
static int own_files(void)
{
    return errno_of(unshare(CLONE_FILES));
}

int main(void)
{
    host_begin();
    char results[256];
    snprintf(results, sizeof results, "%d %d %d %d %d %d %d", in_child(new_user), in_child(new_user_without_descriptors),
             in_child(new_mounts), in_child(enter_mounts), in_child(enter_user), in_child(own_signals), in_child(own_files));
    host_say("results %s", results);
    host_say("itself %d", new_user());
    pthread_t late = host_thread("late", late_main, NULL);
    while (sink == 0)
        NOT_A_TAIL_CALL();
    /* With a second thread of the host they fail, with or without the agent. */
    host_say("with a thread %d", new_user());
    host_say("ready");
    host_wait_for_end();
    pthread_join(late, NULL);
    return host_end();
}
