/* A host with a malloc of its own, which counts the calls of the agent's threads. The host must see none: the agent has
 * another heap. Only calls of the thread that starts others are allowed, up to eight: the C library allocates for each
 * thread that is started. The hazard: what the agent keeps in the host's heap could be broken with it; its threads
 * would wait for the heap's locks; and glibc reserves 64 MiB of addresses for each thread that allocates (malloc's
 * arenas; noticed under RLIMIT_AS). */
// cflags: -O2 -fno-builtin
// record: seconds=1&hz=500
// expect: thread allocator has stack allocator_main
// record: samples=500&hz=500&mode=cpu
// expect: samples >= 1
#include "host.h"
#include <sys/prctl.h>

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *memory, size_t size);

static atomic_long visits, of_starters;
static char visitor[16];

static void look(void)
{
    char name[16] = "";
    prctl(PR_GET_NAME, name);
    if (strncmp(name, "swipr-", 6) != 0)
        return;
    if (strcmp(name, "swipr-server") == 0) {
        atomic_fetch_add(&of_starters, 1);
        return;
    }
    memcpy(visitor, name, sizeof visitor);
    atomic_fetch_add(&visits, 1);
}
void *malloc(size_t size)
{
    look();
    return __libc_malloc(size);
}
void *calloc(size_t count, size_t size)
{
    look();
    return __libc_calloc(count, size);
}
void *realloc(void *memory, size_t size)
{
    look();
    return __libc_realloc(memory, size);
}

FRAME static void *allocator_main(void *argument)
{
    while (!atomic_load(&host_ending))
        free(malloc(100));
    return argument;
}

int main(void)
{
    host_begin();
    pthread_t allocator = host_thread("allocator", allocator_main, NULL);
    host_say("ready");
    host_wait_for_end();
    pthread_join(allocator, NULL);
    host_say("%ld visits, the last of %s; %ld by threads that start threads", atomic_load(&visits), visitor, atomic_load(&of_starters));
    HOST_CHECK(atomic_load(&visits) == 0 && atomic_load(&of_starters) <= 8);
    return host_end();
}
