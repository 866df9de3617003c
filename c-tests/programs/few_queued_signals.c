/* A service whose user may queue no more signals (setrlimit(2), RLIMIT_SIGPENDING) than it has threads, and that changes its
 * user while it is recorded. glibc's seteuid(3) signals all threads, and leaves out those for which no signal can be queued.
 * All threads must change. The hazard: the agent's timers, each of which counts as a queued signal, use up the limit. Where
 * the runner is not root there is nothing to change. */
// cflags: -O2
#include "burner.h"
#include <sys/resource.h>

/* A user of its own: signals are counted for a user, whichever process they are queued for. */
enum { THREADS = 40, USER = 54321 };

/* How many threads have not changed to user 0. A thread that is just ending has no line. */
static int unchanged(void)
{
    int count = 0;
    DIR *tasks = opendir("/proc/self/task");
    HOST_CHECK(tasks != NULL);
    struct dirent *task;
    while ((task = readdir(tasks)) != NULL) {
        char path[64], text[4096];
        snprintf(path, sizeof path, "/proc/self/task/%.20s/status", task->d_name);
        FILE *file = task->d_name[0] == '.' ? NULL : fopen(path, "re");
        if (file == NULL)
            continue;
        text[fread(text, 1, sizeof text - 1, file)] = 0;
        fclose(file);
        count += strstr(text, "\nUid:\t54321\t54321\t") != NULL;
    }
    closedir(tasks);
    return count;
}
FRAME static void *worker_main(void *argument)
{
    host_arrive();
    const struct timespec pause = {0, 10000000};
    while (!atomic_load(&host_ending)) {
        for (int i = 0; i < 100000; i++)
            sink++;
        nanosleep(&pause, NULL);
    }
    return argument;
}

/* From here on its signals are counted for it alone. */
static void become_user(bool root)
{
    const struct rlimit few = {THREADS + 1, THREADS + 1};
    if (root)
        HOST_CHECK(setresuid(USER, USER, 0) == 0);
    HOST_CHECK(setrlimit(RLIMIT_SIGPENDING, &few) == 0);
    for (int i = 0; i < THREADS; i++)
        host_thread("worker", worker_main, NULL);
    host_wait_until_arrived(THREADS);
    host_say("user");
}

static void change_user(void)
{
    for (int turn = 0; turn < 20; turn++) {
        HOST_CHECK(seteuid(0) == 0);
        for (int ms = 0; unchanged() > 0; ms++) {
            HOST_CHECK(ms < 10000 && "every thread has the process's user");
            usleep(1000);
        }
        HOST_CHECK(seteuid(USER) == 0);
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
    become_user(root);
    while (host_line(line, sizeof line)) {
        if (root)
            change_user();
        host_say("changed");
    }
    atomic_store(&host_ending, true);
    return host_end();
}
