/* A service whose user may queue no more signals (setrlimit(2), RLIMIT_SIGPENDING) than it has threads, and that changes
 * its user while it is recorded. glibc's seteuid(3) signals all threads, and leaves out those for which no signal can be
 * queued. All threads must change. The hazard: the agent's timers, each of which counts as a queued signal, use up the
 * limit. Where the runner is not root there is nothing to change. */
// cflags: -O2
#include "all_threads.h"
#include "burner.h"
#include <sys/resource.h>

/* A user of its own: signals are counted for a user, whichever process they are queued for. */
enum { THREADS = 40, USER = 54321, LIMIT = THREADS + 1 };

/* How many signals the user has queued. */
static int queued(void)
{
    char line[256];
    int count = -1;
    FILE *file = fopen("/proc/self/status", "re");
    HOST_CHECK(file != NULL);
    while (fgets(line, sizeof line, file) != NULL)
        sscanf(line, "SigQ: %d/", &count);
    fclose(file);
    return count;
}
FRAME static void *worker_main(void *argument)
{
    const struct timespec pause = {0, 10000000};
    while (!atomic_load(&host_ending)) {
        for (int i = 0; i < 100000; i++)
            sink++;
        nanosleep(&pause, NULL);
    }
    return argument;
}

/* Most threads have timers: then the limit is lowered. Half of it must become free and stay so. */
static void lower_limit(void)
{
    const struct rlimit few = {LIMIT, LIMIT};
    for (int ms = 0; queued() < LIMIT * 3 / 4; ms++) {
        HOST_CHECK(ms < 10000 && "the threads have timers");
        usleep(1000);
    }
    HOST_CHECK(setrlimit(RLIMIT_SIGPENDING, &few) == 0);
    for (int ms = 0; queued() > LIMIT / 2; ms++) {
        HOST_CHECK(ms < 10000 && "half of the limit is left to the program");
        usleep(1000);
    }
}
static void change_user(void)
{
    for (int turn = 0; turn < 20; turn++) {
        HOST_CHECK(seteuid(0) == 0);
        check_all_threads("\nUid:\t54321\t0\t0\t0\n");
        HOST_CHECK(seteuid(USER) == 0);
        HOST_CHECK(queued() <= LIMIT / 2);
        usleep(20000);
    }
}

int main(void)
{
    char line[64];
    host_begin();
    bool root = geteuid() == 0;
    host_say(root ? "root" : "not root");
    host_say("ready");
    HOST_CHECK(host_line(line, sizeof line));
    if (root)
        HOST_CHECK(setresuid(USER, USER, 0) == 0);
    for (int i = 0; i < THREADS; i++)
        host_thread("worker", worker_main, NULL);
    host_say("user");
    while (host_line(line, sizeof line)) {
        if (root) {
            lower_limit();
            change_user();
        }
        host_say("changed");
    }
    atomic_store(&host_ending, true);
    return host_end();
}
