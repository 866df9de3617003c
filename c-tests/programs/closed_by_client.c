/* A program that only works; its runner misbehaves as a client: goes away in the
 * middle of a recording, connects and closes a thousand times, sends half a request. */
// cflags: -O2
#include "host.h"

static volatile uint64_t sink;

FRAME static void work(void)
{
    while (!atomic_load(&host_ending))
        sink++;
}
FRAME static void *burner_main(void *argument)
{
    work();
    NOT_A_TAIL_CALL();
    return argument;
}

int main(void)
{
    host_begin();
    pthread_t burner = host_thread("burner", burner_main, NULL);
    while (sink == 0)
        NOT_A_TAIL_CALL();
    host_say("ready");
    host_wait_for_end();
    pthread_join(burner, NULL);
    return host_end();
}
