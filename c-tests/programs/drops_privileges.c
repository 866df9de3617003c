/* A service that starts as root and becomes an ordinary user (setgroups, setgid, setuid): no thread of the process keeps what it
 * gave up, nobody gets it back, and it can still be profiled. Where the runner is not root there is nothing to drop. */
// cflags: -O2
#include "burner.h"
#include <grp.h>

enum { USER = 65534 };

/* Whether a line of each thread's status is this. */
static void check_all_threads(const char *wanted)
{
    DIR *tasks = opendir("/proc/self/task");
    HOST_CHECK(tasks != NULL);
    struct dirent *task;
    while ((task = readdir(tasks)) != NULL) {
        char path[64], text[4096];
        if (task->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "/proc/self/task/%.20s/status", task->d_name);
        FILE *file = fopen(path, "re");
        if (file == NULL)
            continue;
        size_t length = fread(text, 1, sizeof text - 1, file);
        fclose(file);
        text[length] = 0;
        if (strstr(text, wanted) == NULL)
            host_say("a thread without %s: %.60s", wanted, text);
        HOST_CHECK(strstr(text, wanted) != NULL);
    }
    closedir(tasks);
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
