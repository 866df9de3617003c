/* Exits, with an exit handler that takes its time. With `works`, a thread works on meanwhile, whose memory such a handler
 * would have destroyed. The hazard: the agent's exit handler, which was registered first, holds up the exit behind the
 * program's. The handler says whether the file of the program's life is there. With `exits`, a thread exits a moment after
 * the first one, and there is no handler. The hazard: the agent holds up the first one, and the status is the other's. */
#include "host.h"

static volatile uint64_t sink;

FRAME static void exit_handler(void)
{
    char path[512];
    snprintf(path, sizeof path, "%s/life.%d.folded", getenv("LIFE_DIRECTORY"), getpid());
    host_say("handler %s", access(path, F_OK) == 0 ? "behind the file" : "before the file");
    for (uint64_t began_ns = host_thread_cpu_ns(); host_thread_cpu_ns() - began_ns < 200000000;)
        NOT_A_TAIL_CALL();
}

FRAME static void *detached_main(void *argument)
{
    for (;;)
        sink++;
    return argument;
}

FRAME static void *exits_main(void *argument)
{
    const struct timespec moment = {0, 2000000};
    while (!atomic_load(&host_ending))
        sink++;
    nanosleep(&moment, NULL);
    exit(4);
    return argument;
}

int main(int count, char **arguments)
{
    const char *what = count > 1 ? arguments[1] : "";
    host_begin();
    HOST_CHECK(getenv("LIFE_DIRECTORY"));
    if (strcmp(what, "exits") == 0)
        host_thread("exits", exits_main, NULL);
    else
        HOST_CHECK(atexit(exit_handler) == 0);
    if (strcmp(what, "works") == 0)
        host_thread("detached", detached_main, NULL);
    host_say("ready");
    host_wait_for_end();
    return 3;
}
