/* A process that another one traces as strace(1) and gdb(1) do (ptrace(2)): it stops at every system call and every
 * signal, and the tracer resumes it. The host must see no signal that it would not see otherwise. It must be recorded,
 * though more slowly. The hazard: the agent's signals stop the process for the tracer, and come late. */
// cflags: -O2
// record: seconds=2&hz=200
// expect: thread burner has stack burner_main;work
// expect: thread caller has stack caller_main;call
#include "burner.h"
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

FRAME static void call(void)
{
    const struct timespec moment = {0, 200000};
    while (!atomic_load(&host_ending))
        HOST_CHECK(nanosleep(&moment, NULL) == 0 || errno == EINTR);
}
FRAME static void *caller_main(void *argument)
{
    call();
    NOT_A_TAIL_CALL();
    return argument;
}
/* Follows every thread there is, as `strace -f -p` does, until the process is gone. */
static int trace(pid_t traced, int tell)
{
    char path[64];
    int status, calls = 0;
    snprintf(path, sizeof path, "/proc/%d/task", (int)traced);
    DIR *tasks = opendir(path);
    struct dirent *task;
    while (tasks != NULL && (task = readdir(tasks)) != NULL) {
        pid_t tid = (pid_t)atol(task->d_name);
        if (tid > 0 && ptrace(PTRACE_SEIZE, tid, NULL, PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE) == 0)
            ptrace(PTRACE_INTERRUPT, tid, NULL, NULL);
    }
    if (write(tell, "t", 1) != 1)
        return 1;
    for (;;) {
        pid_t tid = waitpid(-1, &status, __WALL);
        if (tid < 0)
            return calls > 100 ? 0 : 2;
        if (!WIFSTOPPED(status))
            continue;
        int signal = WSTOPSIG(status);
        calls += signal == (SIGTRAP | 0x80);
        /* Stops of the tracer's own making carry no signal. */
        bool is_own = signal == (SIGTRAP | 0x80) || status >> 16 != 0;
        ptrace(PTRACE_SYSCALL, tid, NULL, (void *)(long)(is_own ? 0 : signal));
    }
}

int main(void)
{
    int ready[2], go[2];
    char byte;
    host_begin();
    HOST_CHECK(pipe(ready) == 0 && pipe(go) == 0);
    pid_t host = getpid(), tracer = fork();
    HOST_CHECK(tracer >= 0);
    if (tracer == 0) {
        close(go[1]);
        _exit(read(go[0], &byte, 1) == 1 ? trace(host, ready[1]) : 3);
    }
    /* Where only parents may trace their children (Yama). */
    prctl(PR_SET_PTRACER, tracer, 0, 0, 0);
    pthread_t burner = burner_begin();
    pthread_t caller = host_thread("caller", caller_main, NULL);
    HOST_CHECK(write(go[1], "g", 1) == 1 && read(ready[0], &byte, 1) == 1);
    host_say("ready");
    host_wait_for_end();
    pthread_join(burner, NULL);
    pthread_join(caller, NULL);
    return host_end();
}
