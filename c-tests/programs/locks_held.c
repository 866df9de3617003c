/* Threads that are interrupted while they hold the locks which a signal handler must not take: malloc's (two threads
 * contend for it), the loader's (a callback of dl_iterate_phdr(3) computes) and stdio's (a stream is held locked).
 * The recording must show complete stacks. The hazard: a handler that allocates, looks objects up or prints waits
 * for ever. */
// cflags: -O2
// record: samples=400&hz=400
// expect: samples >= 800
// expect: thread allocator has stack allocator_main;allocate
// expect: every sample of allocator is complete
// expect: every sample of loader has stack loader_main
// expect: every sample of loader is complete
// expect: every sample of printer has stack printer_main;hold_stream
// expect: every sample of printer is complete
#include "host.h"
#include <link.h>

static volatile uint64_t sink;

FRAME static void allocate(void)
{
    void *blocks[64];
    while (!atomic_load(&host_ending)) {
        /* Sizes that go to the arena, not to the thread's own cache. */
        for (size_t i = 0; i < 64; i++)
            blocks[i] = malloc(2000 + 100 * i);
        for (size_t i = 0; i < 64; i++)
            free(blocks[i]);
    }
}
FRAME static void *allocator_main(void *argument)
{
    host_arrive();
    allocate();
    NOT_A_TAIL_CALL();
    return argument;
}

FRAME static int on_object(struct dl_phdr_info *info, size_t size, void *argument)
{
    (void)info;
    (void)size;
    (void)argument;
    for (int i = 0; i < 2000000 && !atomic_load(&host_ending); i++)
        sink++;
    return 1;
}
FRAME static void *loader_main(void *argument)
{
    host_arrive();
    while (!atomic_load(&host_ending))
        dl_iterate_phdr(on_object, NULL);
    return argument;
}

FRAME static void hold_stream(void)
{
    flockfile(stdout);
    flockfile(stderr);
    host_arrive();
    while (!atomic_load(&host_ending))
        sink++;
    funlockfile(stderr);
    funlockfile(stdout);
}
FRAME static void *printer_main(void *argument)
{
    hold_stream();
    NOT_A_TAIL_CALL();
    return argument;
}

int main(void)
{
    pthread_t threads[4];
    host_begin();
    threads[0] = host_thread("allocator", allocator_main, NULL);
    threads[1] = host_thread("allocator", allocator_main, NULL);
    threads[2] = host_thread("loader", loader_main, NULL);
    threads[3] = host_thread("printer", printer_main, NULL);
    host_wait_until_arrived(4);
    host_say("ready");
    host_wait_for_end();
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    return host_end();
}
