/* An agent whose start takes four seconds (its socket lies on a file system that does not answer). The host must see
 * calls by which it gives up rights, or enters name spaces of its own, return long before. It makes them in children,
 * whose agent starts with them. The hazard: such a call waits for the agent's start. */
// cflags: -O2
#include "burner.h"
#include <linux/capability.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

static atomic_bool slow;
static atomic_int seconds = 4;
static atomic_int begun, waited, bound;

static bool is_profiled(void)
{
    const char *preload = getenv("LD_PRELOAD");
    return preload != NULL && strstr(preload, "libswipr") != NULL;
}
static void wait_for(atomic_int *count)
{
    const struct timespec moment = {0, 1000000};
    while (is_profiled() && atomic_load(count) == 0)
        nanosleep(&moment, NULL);
}

/* The C library's, for all callers in this process, the agent with the fault `imports` too. */
int bind(int descriptor, const struct sockaddr *address, socklen_t length)
{
    struct timespec pause = {atomic_load(&seconds), 0};
    if (atomic_load(&slow)) {
        atomic_fetch_add(&begun, 1);
        /* setresuid(2) interrupts it: glibc has each thread make the call. */
        while (nanosleep(&pause, &pause) != 0)
            NOT_A_TAIL_CALL();
        atomic_fetch_add(&waited, 1);
    }
    int result = (int)syscall(SYS_bind, descriptor, address, length);
    atomic_fetch_add(&bound, 1);
    return result;
}
static void changes_users(void)
{
    HOST_CHECK(setresuid(getuid(), geteuid(), geteuid()) == 0);
}
static void keeps_capabilities(void)
{
    HOST_CHECK(prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) == 0);
}
/* The agent's thread loses the right to change users by the first change, and the caller keeps it. glibc aborts the
 * process if that thread is still there at the second change. */
static void changes_users_twice(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2] = {{.effective = 1u << CAP_SETUID, .permitted = 1u << CAP_SETUID}};
    if (geteuid() != 0)
        _exit(0);
    keeps_capabilities();
    HOST_CHECK(setresuid(1000, 1000, 1000) == 0);
    HOST_CHECK(syscall(SYS_capset, &header, data) == 0);
    HOST_CHECK(setresuid(33, 33, 33) == 0);
    _exit(0);
}
static void drops_capabilities(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[2] = {{0, 0, 0}, {0, 0, 0}};
    HOST_CHECK(syscall(SYS_capset, &header, none) == 0);
}
static void leaves(void)
{
    /* Whether that succeeds while another thread starts is another matter. */
    (void)unshare(CLONE_NEWUSER);
}
static void in_child(void (*call)(void))
{
    int status = 0;
    pid_t child = fork();
    HOST_CHECK(child >= 0);
    if (child == 0) {
        wait_for(&begun);
        call();
        _exit(atomic_load(&waited) == 0 ? 0 : 1);
    }
    HOST_CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int main(void)
{
    host_begin();
    wait_for(&bound);
    atomic_store(&slow, true);
    in_child(changes_users);
    in_child(keeps_capabilities);
    in_child(drops_capabilities);
    in_child(leaves);
    atomic_store(&seconds, 1);
    in_child(changes_users_twice);
    atomic_store(&slow, false);
    pthread_t burner = burner_begin();
    host_say("ready");
    host_wait_for_end();
    pthread_join(burner, NULL);
    return host_end();
}
