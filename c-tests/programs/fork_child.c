/* A child made by fork has a socket of its own and is profiled; the parent keeps its own socket. `forks` and `spawns`
 * make children, with and without exec, while a recording of the parent runs. The host must see each child run, work
 * and end as without a profiler. The hazard: what a child inherits from the parent's agent, such as a lock that is held
 * or a signal that is pending. */
// cflags: -O2
#include "host.h"
#include <sys/wait.h>

static volatile uint64_t sink;

FRAME static void child_work(void)
{
    while (!atomic_load(&host_ending))
        sink++;
}
FRAME static void parent_work(void)
{
    while (!atomic_load(&host_ending))
        sink++;
}
FRAME static void *burner_main(void *argument)
{
    parent_work();
    NOT_A_TAIL_CALL();
    return argument;
}
FRAME static void *child_main(void *argument)
{
    child_work();
    NOT_A_TAIL_CALL();
    return argument;
}
static int ended_with(pid_t child)
{
    int status = 0;
    HOST_CHECK(waitpid(child, &status, 0) == child);
    return status;
}
static void forks(void)
{
    for (int i = 0; i < 50; i++) {
        pid_t child = fork();
        HOST_CHECK(child >= 0);
        if (child == 0) {
            for (int j = 0; j < 100000; j++)
                sink++;
            char *memory = malloc(100000);
            memset(memory, i, 100000);
            _exit(memory[99999] == (char)i ? 10 + i : 1);
        }
        int status = ended_with(child);
        HOST_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 10 + i);
    }
}
static void spawns(void)
{
    for (int i = 0; i < 20; i++)
        HOST_CHECK(system("exit 3") == 3 << 8);
    for (int i = 0; i < 20; i++) {
        pid_t child = fork();
        HOST_CHECK(child >= 0);
        if (child == 0) {
            execl("/bin/sh", "sh", "-c", "exit 4", (char *)NULL);
            _exit(1);
        }
        int status = ended_with(child);
        HOST_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 4);
    }
}

int main(void)
{
    int alive[2];
    char line[64];
    host_begin();
    HOST_CHECK(pipe(alive) == 0);
    pid_t child = fork();
    HOST_CHECK(child >= 0);
    if (child == 0) {
        /* Lives until the parent's end of the pipe is closed. */
        char byte;
        host_begin();
        close(alive[1]);
        host_thread("childworker", child_main, NULL);
        ssize_t got = read(alive[0], &byte, 1);
        exit(got == 0 ? 5 : 1);
    }
    close(alive[0]);
    pthread_t burner = host_thread("burner", burner_main, NULL);
    while (sink == 0)
        NOT_A_TAIL_CALL();
    host_say("child %d", (int)child);
    host_say("ready");
    while (host_line(line, sizeof line)) {
        if (strcmp(line, "forks") == 0)
            forks();
        else if (strcmp(line, "spawns") == 0)
            spawns();
        host_say("%s done", line);
    }
    atomic_store(&host_ending, true);
    close(alive[1]);
    int status = ended_with(child);
    HOST_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 5);
    pthread_join(burner, NULL);
    return host_end();
}
