/* Functions that are bound at their first call: the loader's entry for that keeps its frame in a callee-saved
 * register, which the functions it calls use for themselves. One thread burns CPU in a resolver
 * called from there, one is blocked in it. */
// libs: -ldl
// library: lazily_bound.c
// record: samples=500&hz=500
// expect: every sample of burner has stack burner_main;call_burning;burn_until_the_end
// expect: every sample of burner is complete
// expect: every sample of reader has stack reader_main;call_reading;read_until_the_end
// expect: every sample of reader is complete
#include "host.h"
#include <dlfcn.h>

static void *library;

static void *function(const char *name)
{
    void *address = dlsym(library, name);
    HOST_CHECK(address != NULL);
    return address;
}
FRAME static void *burner_main(void *call)
{
    ((void (*)(void))call)();
    NOT_A_TAIL_CALL();
    return NULL;
}
FRAME static void *reader_main(void *call)
{
    ((void (*)(void))call)();
    NOT_A_TAIL_CALL();
    return NULL;
}

int main(int count, char **arguments)
{
    int ends[2];
    host_begin();
    HOST_CHECK(count > 1 && pipe(ends) == 0);
    library = dlopen(arguments[1], RTLD_LAZY);
    HOST_CHECK(library != NULL);
    void (*prepare)(atomic_bool *, atomic_int *, int) = function("prepare");
    prepare(&host_ending, &host_arrived, ends[0]);
    pthread_t reader = host_thread("reader", reader_main, function("call_reading"));
    host_wait_until_blocked(1);
    pthread_t burner = host_thread("burner", burner_main, function("call_burning"));
    host_wait_until_arrived(2);
    host_say("ready");
    host_wait_for_end();
    close(ends[1]);
    pthread_join(burner, NULL);
    pthread_join(reader, NULL);
    return host_end();
}
