/* A handler that ends the process, most often in the middle of a fork(2). The program has one thread: the C library locks nothing there. */
// cflags: -O2
#include "host.h"
#include <sys/time.h>
#include <sys/wait.h>

static char much[64 << 20]; /* to copy its page table takes a while */

static void end(int number)
{
    exit(number == SIGALRM ? 3 : 4);
}

int main(void)
{
    host_begin();
    memset(much, 1, sizeof much);
    signal(SIGALRM, end);
    host_say("ready");
    const struct itimerval soon = {.it_value = {0, 20000 + getpid() % 997 * 20}};
    setitimer(ITIMER_REAL, &soon, NULL);
    for (;;) {
        pid_t child = fork();
        if (child == 0)
            _exit(0);
        waitpid(child, NULL, 0);
    }
}
