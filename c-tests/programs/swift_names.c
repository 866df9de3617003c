/* Names of Swift's functions are readable where the program comes with Swift's runtime: only that knows
 * what they mean. The runtime here is one function, which knows two names and is exported as Swift's is. */
// cflags: -O2 -rdynamic
// record: samples=300&hz=200
// expect: every sample of burner has stack burner_main;main.hot
// record: samples=300&hz=200&names=raw
// expect: every sample of burner has stack burner_main;main.hot(Swift.Int)*
// record: samples=300&hz=200&names=mangled
// expect: every sample of burner has stack burner_main;_T04main3hotySiF
// record: samples=300&hz=200
// expect: every sample of other has stack other_main;_T04main7unknownyyF
// expect: every sample of long has stack long_main;_T04main4longyyF
#include "host.h"

static volatile uint64_t sink;

char *swift_demangle(const char *name, size_t bytes, char *room, size_t *room_bytes, uint32_t flags);

char *swift_demangle(const char *name, size_t bytes, char *room, size_t *room_bytes, uint32_t flags)
{
    static const char readable[] = "main.hot(Swift.Int) -> ()";
    HOST_CHECK(flags == 0 && room != NULL && strlen(name) == bytes);
    if (strcmp(name, "_T04main4longyyF") == 0) {
        /* Longer than any room: it is filled, and the size tells how long it would have been. */
        memset(room, 'x', *room_bytes);
        room[*room_bytes - 1] = 0;
        *room_bytes = 1 << 20;
        return room;
    }
    if (strcmp(name, "_T04main3hotySiF") != 0 || *room_bytes < sizeof readable)
        return NULL;
    memcpy(room, readable, sizeof readable);
    *room_bytes = sizeof readable;
    return room;
}

static void hot(void) __asm__("_T04main3hotySiF");
static void unknown(void) __asm__("_T04main7unknownyyF");
static void endless(void) __asm__("_T04main4longyyF");

FRAME static void hot(void)
{
    while (!atomic_load(&host_ending))
        sink++;
}
FRAME static void unknown(void)
{
    while (!atomic_load(&host_ending))
        sink++;
}
FRAME static void endless(void)
{
    while (!atomic_load(&host_ending))
        sink++;
}
FRAME static void *burner_main(void *argument)
{
    hot();
    NOT_A_TAIL_CALL();
    return argument;
}
FRAME static void *other_main(void *argument)
{
    unknown();
    NOT_A_TAIL_CALL();
    return argument;
}
FRAME static void *long_main(void *argument)
{
    endless();
    NOT_A_TAIL_CALL();
    return argument;
}

int main(void)
{
    host_begin();
    pthread_t threads[] = {host_thread("burner", burner_main, NULL), host_thread("other", other_main, NULL),
                           host_thread("long", long_main, NULL)};
    while (sink == 0)
        NOT_A_TAIL_CALL();
    host_say("ready");
    host_wait_for_end();
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    return host_end();
}
