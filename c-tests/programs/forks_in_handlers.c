/* Handlers that fork where they have interrupted malloc(3) or another fork(2), or on a small alternate stack, as those that start a debugger do.
 * The program has one thread: the C library locks nothing there. A signal that it has blocked stays pending across its fork. */
// cflags: -O2
#include "host.h"
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>

static atomic_int forks;

static void fork_and_wait(void)
{
    int status;
    pid_t child = fork();
    if (child == 0) {
        free(malloc(3000));
        _exit(3);
    }
    HOST_CHECK(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 3);
}
static void on_alarm(int number)
{
    (void)number;
    int before = errno;
    fork_and_wait();
    atomic_fetch_add(&forks, 1);
    errno = before;
}
static void on_fault(int number)
{
    static int depth;
    (void)number;
    if (depth++ > 0)
        _exit(9); /* the child has used up its stack */
    fork_and_wait();
    _exit(5);
}

int main(void)
{
    enum { ALTERNATE = 8 << 10 };
    host_begin();
    signal(SIGALRM, on_alarm);
    host_say("ready");
    const struct itimerval each = {{0, 2000}, {0, 2000}};
    setitimer(ITIMER_REAL, &each, NULL);
    while (atomic_load(&forks) < 200) {
        for (int count = 0; count < 1000; count++)
            free(malloc(3000));
        fork_and_wait();
    }
    const struct itimerval never = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &never, NULL);

    sigset_t one;
    int number = 0;
    sigemptyset(&one);
    sigaddset(&one, SIGTRAP);
    sigprocmask(SIG_BLOCK, &one, NULL);
    kill(getpid(), SIGTRAP);
    fork_and_wait();
    HOST_CHECK(sigwait(&one, &number) == 0 && number == SIGTRAP);

    char *memory = mmap(NULL, 4096 + ALTERNATE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    HOST_CHECK(mprotect(memory + 4096, ALTERNATE, PROT_READ | PROT_WRITE) == 0);
    const stack_t stack = {.ss_sp = memory + 4096, .ss_size = ALTERNATE};
    HOST_CHECK(sigaltstack(&stack, NULL) == 0);
    const struct sigaction action = {.sa_handler = on_fault, .sa_flags = SA_ONSTACK};
    HOST_CHECK(sigaction(SIGSEGV, &action, NULL) == 0);
    *(volatile char *)memory = 1;
    return host_end();
}
