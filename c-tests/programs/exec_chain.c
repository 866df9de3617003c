/* A program that executes itself again and again while it is sampled: a signal of the agent's that is still under way
 * must not kill the next program, whose handlers are the default ones. */
// cflags: -O2
#include "host.h"

static void *burn(void *argument)
{
    for (;;)
        NOT_A_TAIL_CALL();
    return argument;
}

int main(int count, char **arguments)
{
    long left = count == 2 ? atol(arguments[1]) : 30;
    char next[32];
    struct timespec start, now;
    host_begin();
    if (left == 30)
        host_say("ready");
    if (left == 0) {
        host_wait_for_end();
        return host_end();
    }
    host_thread("burner", burn, NULL);
    clock_gettime(CLOCK_MONOTONIC, &start);
    do
        clock_gettime(CLOCK_MONOTONIC, &now);
    while ((now.tv_sec - start.tv_sec) * 1000 + (now.tv_nsec - start.tv_nsec) / 1000000 < 40);
    snprintf(next, sizeof next, "%ld", left - 1);
    execl("/proc/self/exe", arguments[0], next, NULL);
    HOST_CHECK(!"exec failed");
}
