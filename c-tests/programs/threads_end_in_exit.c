/* Threads that end in an exit handler: by pthread_exit, or cancelled while they wait there. Their stack is unwound, through
 * exit(3) or quick_exit(3). The hazard: a function of the agent's stands in between, and ends the program. */
#include "host.h"

static void waits(void)
{
    pause();
}
static void ends(void)
{
    pthread_exit(NULL);
}
static void *exits_main(void *argument)
{
    exit(5);
    return argument;
}
static void *quick_main(void *argument)
{
    quick_exit(5);
    return argument;
}

int main(int count, char **arguments)
{
    const char *what = count > 1 ? arguments[1] : "";
    const struct timespec moment = {0, 200000000};
    host_begin();
    atexit(strcmp(what, "cancelled") == 0 ? waits : ends);
    at_quick_exit(ends);
    if (strcmp(what, "first") == 0)
        exit(6);
    pthread_t thread = host_thread("exits", strcmp(what, "quick") == 0 ? quick_main : exits_main, NULL);
    nanosleep(&moment, NULL);
    pthread_cancel(thread);
    pthread_join(thread, NULL);
    _exit(42);
}
