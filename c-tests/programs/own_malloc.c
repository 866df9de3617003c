/* A host with a malloc of its own, which counts the calls of the agent's threads. The host must see none: the agent has
 * another heap, and its threads have stacks for which the C library has allocated before. The hazard: in a program with
 * one thread, malloc may have no locks (bash's: of 83 scripts of its tests 20 ended by a signal); what the agent keeps
 * in the host's heap could be broken with it; its threads would wait for the heap's locks; and glibc reserves 64 MiB of
 * addresses for each thread that allocates (malloc's arenas; noticed under RLIMIT_AS). */
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
extern void __libc_free(void *memory);

static atomic_long visits;
static char visitor[16];

static void look(void)
{
    char name[16] = "";
    prctl(PR_GET_NAME, name);
    if (strncmp(name, "swipr-", 6) != 0)
        return;
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
void free(void *memory)
{
    if (memory != NULL) /* the C library frees what a thread has not, as it gives its stack to another one */
        look();
    __libc_free(memory);
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
    host_say("%ld visits, the last of %s", atomic_load(&visits), visitor);
    HOST_CHECK(atomic_load(&visits) == 0);
    return host_end();
}
