/* A library loaded while a recording runs is walked through and its functions have
 * names; loading, running and unloading it over and over while sampled does no harm:
 * the profiler reads neither tables nor names from a file that is being unmapped. */
// cflags: -O2
// libs: -ldl
// library: late_library.c
#include "host.h"
#include <dlfcn.h>

typedef void late(atomic_bool *ending, unsigned long rounds);

static volatile uint64_t sink;
static atomic_bool stop_late;
static const char *path;

static void *load(late **function)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    HOST_CHECK(library != NULL);
    *(void **)function = dlsym(library, "late_function");
    HOST_CHECK(*function != NULL);
    return library;
}
FRAME static void *caller_main(void *argument)
{
    late *function;
    void *library = load(&function);
    function(&stop_late, ~0UL);
    dlclose(library);
    return argument;
}
FRAME static void *steady_main(void *argument)
{
    while (!atomic_load(&host_ending))
        sink++;
    return argument;
}

int main(int count, char **arguments)
{
    char line[64];
    host_begin();
    HOST_CHECK(count == 2);
    path = arguments[1];
    pthread_t steady = host_thread("steady", steady_main, NULL);
    pthread_t caller = steady;
    while (sink == 0)
        NOT_A_TAIL_CALL();
    host_say("ready");
    while (host_line(line, sizeof line)) {
        if (strcmp(line, "open") == 0) {
            caller = host_thread("caller", caller_main, NULL);
        } else if (strcmp(line, "close") == 0) {
            atomic_store(&stop_late, true);
            pthread_join(caller, NULL);
        } else if (strcmp(line, "cycle") == 0) {
            atomic_store(&stop_late, false);
            for (int i = 0; i < 2000; i++) {
                late *function;
                void *library = load(&function);
                function(&stop_late, 200000);
                HOST_CHECK(dlclose(library) == 0);
            }
        }
        host_say("%s done", line);
    }
    atomic_store(&host_ending, true);
    pthread_join(steady, NULL);
    return host_end();
}
