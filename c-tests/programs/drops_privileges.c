/* A service that starts as root and becomes an ordinary user (setgroups(2), setgid(2), setuid(2)). The host must see
 * that no thread of the process keeps what the process gave up, and that it cannot become root again. It must still be
 * profiled. The hazard: a thread of the agent's keeps root. Where the runner is not root there is nothing to drop. */
// cflags: -O2
#include "burner.h"
#include <grp.h>

enum { USER = 65534 };

/* Whether a thread is there whose status has no such line. Names it. */
static bool one_without(const char *wanted, char text[static 4096])
{
    bool found = false;
    DIR *tasks = opendir("/proc/self/task");
    HOST_CHECK(tasks != NULL);
    struct dirent *task;
    while (!found && (task = readdir(tasks)) != NULL) {
        char path[64];
        if (task->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "/proc/self/task/%.20s/status", task->d_name);
        FILE *file = fopen(path, "re");
        if (file == NULL)
            continue;
        size_t length = fread(text, 1, 4095, file);
        fclose(file);
        text[length] = 0;
        /* An ended thread's file may be read empty. */
        found = length > 0 && strstr(text, wanted) == NULL;
    }
    closedir(tasks);
    return found;
}

/* Each thread's status has this line. The C library leaves a thread out that is past its last function (EXITING_BIT in
 * glibc's nptl): it keeps its old user for some milliseconds until it is gone, in programs without the agent, too. So
 * a thread without the line has to be gone soon; one that stays with what the others gave up fails the test. */
static void check_all_threads(const char *wanted)
{
    char text[4096];
    for (int ms = 0; one_without(wanted, text); ms++) {
        if (ms == 10000) {
            host_say("a thread without %s: %.60s", wanted, text);
            HOST_CHECK(!"every thread has given up what the process gave up");
        }
        usleep(1000);
    }
}

int main(void)
{
    char line[64];
    host_begin();
    bool root = geteuid() == 0, dropped = false;
    pthread_t burner = burner_begin();
    host_say(root ? "root" : "not root");
    host_say("ready");
    while (host_line(line, sizeof line)) {
        if (root) {
            HOST_CHECK(setgroups(0, NULL) == 0 && setgid(USER) == 0 && setuid(USER) == 0);
            HOST_CHECK(setuid(0) != 0 && errno == EPERM && seteuid(0) != 0 && setgid(0) != 0);
            check_all_threads("\nUid:\t65534\t65534\t65534\t65534\n");
            check_all_threads("\nGid:\t65534\t65534\t65534\t65534\n");
            check_all_threads("\nCapPrm:\t0000000000000000\n");
        }
        dropped = root;
        host_say("dropped");
    }
    if (dropped)
        check_all_threads("\nUid:\t65534\t65534\t65534\t65534\n");
    atomic_store(&host_ending, true);
    pthread_join(burner, NULL);
    return host_end();
}
