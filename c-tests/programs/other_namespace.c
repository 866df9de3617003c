/* A library in a namespace of its own (dlmopen) is in no list of the loader that others
 * get to see: it is found by its mapping, walked through and has names. */
// cflags: -O2
// libs: -ldl
// library: late_library.c
// record: samples=200&hz=200
// expect: every sample of caller has stack caller_main;late_function
// expect: every sample of caller is complete
// expect: share of named frames in late_library.so >= 0.99
#include "host.h"
#include <dlfcn.h>

typedef void late(atomic_bool *ending, unsigned long rounds);

static late *function;
static atomic_bool calling;

FRAME static void *caller_main(void *argument)
{
    atomic_store(&calling, true);
    function(&host_ending, ~0UL);
    NOT_A_TAIL_CALL();
    return argument;
}

int main(int count, char **arguments)
{
    host_begin();
    HOST_CHECK(count == 2);
    void *library = dlmopen(LM_ID_NEWLM, arguments[1], RTLD_NOW | RTLD_LOCAL);
    HOST_CHECK(library != NULL);
    *(void **)&function = dlsym(library, "late_function");
    HOST_CHECK(function != NULL);
    pthread_t caller = host_thread("caller", caller_main, NULL);
    while (!atomic_load(&calling))
        NOT_A_TAIL_CALL();
    host_say("ready");
    host_wait_for_end();
    pthread_join(caller, NULL);
    return host_end();
}
