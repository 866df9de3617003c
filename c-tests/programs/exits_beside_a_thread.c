/* Exits, with an exit handler that takes its time. With an argument, a thread works on meanwhile, whose memory such a
 * handler would have destroyed. The hazard: the agent's exit handler, which was registered first, holds up the exit behind
 * the program's. The handler says whether the file of the program's life is there. */
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

int main(int count, char **arguments)
{
    (void)arguments;
    host_begin();
    HOST_CHECK(getenv("LIFE_DIRECTORY") && atexit(exit_handler) == 0);
    if (count > 1)
        host_thread("detached", detached_main, NULL);
    host_say("ready");
    host_wait_for_end();
    return 0;
}
