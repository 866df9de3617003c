/* Large writes to a pipe, whose reader is slow, and computation between them. The host must see each write return its
 * whole count. The hazard: a signal ends a write early. Programs that take a part for the whole lose the rest, as
 * CPython with PYTHONUNBUFFERED does. */
// cflags: -O2
// record: samples=1000&hz=1000
// expect: thread writer has stack writer_main;work
// record: samples=1000&hz=1000&mode=cpu
// expect: thread writer has stack writer_main;work
// record: samples=1000&hz=1000&mode=cpu&source=preempt
// expect: thread writer has stack writer_main
#include "host.h"

enum { BYTES = 1 << 20 };
static int ends[2];
static volatile uint64_t sink;

FRAME static void work(void)
{
    for (int i = 0; i < 300000; i++)
        sink++;
}
FRAME static void *writer_main(void *argument)
{
    static char bytes[BYTES];
    while (!atomic_load(&host_ending)) {
        work();
        HOST_CHECK(write(ends[1], bytes, sizeof bytes) == (ssize_t)sizeof bytes);
    }
    close(ends[1]);
    return argument;
}
FRAME static void *reader_main(void *argument)
{
    static char bytes[30000];
    while (read(ends[0], bytes, sizeof bytes) > 0) {}
    return argument;
}

int main(void)
{
    host_begin();
    HOST_CHECK(pipe(ends) == 0);
    pthread_t reader = host_thread("reader", reader_main, NULL);
    pthread_t writer = host_thread("writer", writer_main, NULL);
    host_say("ready");
    host_wait_for_end();
    pthread_join(writer, NULL);
    pthread_join(reader, NULL);
    return host_end();
}
