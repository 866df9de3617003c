/* A service with one thread that works, and before each request makes a call for which the agent ends and starts again. The hazard:
 * what each agent has kept of the work stays in memory. */
// cflags: -O1
#include "host.h"
#include <sys/prctl.h>

static unsigned seed = 1;

/* Stacks of 60 functions, each another one. */
static FRAME int left(int depth);
static FRAME int right(int depth)
{
    if (depth == 0)
        for (volatile int i = 0; i < 20000; i++)
            NOT_A_TAIL_CALL();
    seed = seed * 1664525U + 1013904223U;
    return depth == 0 ? 0 : 1 + (seed >> 16 & 1 ? left(depth - 1) : right(depth - 1));
}
static FRAME int left(int depth)
{
    int below = right(depth == 0 ? 0 : depth - 1);
    NOT_A_TAIL_CALL();
    return below + 1;
}
/* KiB of memory that are the process's own. */
static long own_memory(void)
{
    char line[256];
    long kib = 0;
    FILE *file = fopen("/proc/self/status", "re");
    HOST_CHECK(file != NULL);
    while (fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, "RssAnon:", 8) == 0)
            kib = atol(line + 8);
    fclose(file);
    return kib;
}
static void serve(int requests)
{
    const struct timespec moment = {.tv_nsec = 1000000};
    for (int i = 0; i < requests; i++) {
        uint64_t end = host_thread_cpu_ns() + 200000000;
        while (host_thread_cpu_ns() < end)
            right(60);
        nanosleep(&moment, NULL);
        HOST_CHECK(prctl(PR_SET_KEEPCAPS, 0, 0, 0, 0) == 0);
    }
}

int main(void)
{
    host_begin();
    host_say("ready");
    serve(2);
    long before = own_memory();
    serve(16);
    host_say("grown by %ld", own_memory() - before);
    host_wait_for_end();
    return host_end();
}
