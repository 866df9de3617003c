/* A host that runs with a real-time priority from its start (chrt(1)): the threads of the profiler's are ordinary ones, which never
 * hold a processor that another thread could use. Where real-time priorities are not allowed there is nothing to see. */
// cflags: -O2
// record: samples=200&hz=200
// expect: thread main has stack main
#include "host.h"
#include <sched.h>

static bool is_host_thread(long tid, const long *own, int count)
{
    for (int i = 0; i < count; i++)
        if (own[i] == tid)
            return true;
    return false;
}

int main(int count, char **arguments)
{
    host_begin();
    struct sched_param priority = {.sched_priority = 10};
    if (count == 1) {
        /* What runs from here on has it from its start. */
        if (sched_setscheduler(0, SCHED_RR, &priority) != 0)
            host_say("not allowed: real-time priorities");
        execl("/proc/self/exe", arguments[0], "again", NULL);
        HOST_CHECK(!"exec failed");
    }
    host_say("ready");
    const long own[] = {getpid()};
    int policy = sched_getscheduler(0), others = 0, looks = 0;
    struct timespec pause = {0, 20000000};
    char byte;
    fd_set end;
    FD_ZERO(&end);
    do {
        DIR *tasks = opendir("/proc/self/task");
        struct dirent *task;
        HOST_CHECK(tasks != NULL);
        while ((task = readdir(tasks)) != NULL) {
            long tid = atol(task->d_name);
            if (tid > 0 && !is_host_thread(tid, own, 1))
                others += sched_getscheduler((pid_t)tid) == SCHED_RR;
        }
        closedir(tasks);
        looks++;
        FD_SET(STDIN_FILENO, &end);
        pause.tv_nsec = 20000000;
    } while (pselect(1, &end, NULL, NULL, &pause, NULL) == 0);
    HOST_CHECK(read(STDIN_FILENO, &byte, 1) == 0);
    host_say("policy %d, %d of %d looks found another thread with it", policy, others, looks);
    /* A thread that is just born may not have given it up yet. */
    HOST_CHECK(others <= looks / 4);
    return host_end();
}
