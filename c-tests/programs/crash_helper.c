/* A handler for crashes on an alternate stack of the usual size forks, to start a debugger. A signal that the program has blocked stays pending across
 * its fork. A fork handler writes to memory that is protected until its fault is handled, as collectors have it. The hazards: the agent uses up that
 * stack in the child, whose handler forks again, and so on; it has the signal taken by a thread of its own; it blocks the fault's signal. */
// cflags: -O2
#include "host.h"
#include <sys/mman.h>
#include <sys/wait.h>

static void fork_and_wait(void)
{
    int status;
    pid_t child = fork();
    if (child == 0)
        _exit(3);
    HOST_CHECK(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 3);
}
static char *barrier;
static void on_barrier(int number)
{
    (void)number;
    HOST_CHECK(mprotect(barrier, 4096, PROT_READ | PROT_WRITE) == 0);
}
static void touch(void)
{
    *(volatile char *)barrier = 1;
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
    host_say("ready");
    host_wait_for_end();
    barrier = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    HOST_CHECK(barrier != MAP_FAILED && signal(SIGSEGV, on_barrier) != SIG_ERR);
    HOST_CHECK(pthread_atfork(touch, NULL, NULL) == 0);
    fork_and_wait();
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
