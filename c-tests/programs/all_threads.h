/* What the kernel says of all threads of a program. */
#ifndef SWIPR_C_TESTS_ALL_THREADS_H
#define SWIPR_C_TESTS_ALL_THREADS_H

#include "host.h"

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

#endif
