/* A service whose user may have no new threads (setrlimit(2), RLIMIT_NPROC), as haproxy's after its start. The hazard:
 * each recording needs threads, and none could be made. The limit does not hold for root: then the user is changed.
 * The limit of another process means nothing for this one's threads.
 * With an argument, that is its root directory then, if it may have another one. */
// cflags: -O2
#include "burner.h"
#include "host.h"
#include <sys/resource.h>
#include <sys/wait.h>

enum { USER = 54322 };

static void *never(void *argument)
{
    return argument;
}

static void limits_another(const struct rlimit *limit)
{
    const struct timespec moment = {.tv_nsec = 100000000};
    int before = host_threads();
    pid_t child = fork();
    HOST_CHECK(child >= 0);
    if (child == 0) {
        pause();
        _exit(0);
    }
    HOST_CHECK(prlimit(child, RLIMIT_NPROC, limit, NULL) == 0);
    nanosleep(&moment, NULL);
    HOST_CHECK(host_threads() == before);
    HOST_CHECK(kill(child, SIGKILL) == 0 && waitpid(child, NULL, 0) == child);
}

int main(int count, char **arguments)
{
    char line[64];
    const struct rlimit none = {0, 0};
    pthread_t thread;
    host_begin();
    host_say("ready");
    HOST_CHECK(host_line(line, sizeof line));
    limits_another(&none);
    host_thread("burner", burner_main, NULL);
    if (strcmp(line, "limited already") == 0) {
        /* As by another thread, just before: there can be no thread of the agent's any more. */
        if (geteuid() == 0)
            HOST_CHECK(setresuid(USER, USER, USER) == 0);
        HOST_CHECK(syscall(SYS_prlimit64, 0, RLIMIT_NPROC, &none, NULL) == 0);
    }
    HOST_CHECK(setrlimit(RLIMIT_NPROC, &none) == 0);
    if (count > 1 && geteuid() == 0)
        HOST_CHECK(chroot(arguments[1]) == 0 && chdir("/") == 0);
    if (geteuid() == 0)
        HOST_CHECK(setresuid(USER, USER, USER) == 0);
    HOST_CHECK(pthread_create(&thread, NULL, never, NULL) == EAGAIN);
    host_say("limited");
    host_wait_for_end();
    return host_end();
}
