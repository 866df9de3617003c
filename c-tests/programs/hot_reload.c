/* A plug-in is unloaded, its file replaced by another version of the same size, and
 * loaded again, at the same address: samples are walked and named by the new version. */
// cflags: -O2
// libs: -ldl
#include "host.h"
#include <dlfcn.h>

typedef void entry(atomic_bool *ending);

static atomic_bool stop_caller;
static atomic_bool calling;

static void *load(const char *path, entry **function)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    HOST_CHECK(library != NULL);
    *(void **)function = dlsym(library, "plugin_entry");
    HOST_CHECK(*function != NULL);
    return library;
}
FRAME static void *caller_main(void *argument)
{
    entry *function = (entry *)argument;
    atomic_store(&calling, true);
    function(&stop_caller);
    NOT_A_TAIL_CALL();
    return NULL;
}
static pthread_t call(entry *function)
{
    atomic_store(&stop_caller, false);
    atomic_store(&calling, false);
    pthread_t caller = host_thread("caller", caller_main, (void *)function);
    while (!atomic_load(&calling))
        NOT_A_TAIL_CALL();
    return caller;
}

int main(int count, char **arguments)
{
    char line[64];
    entry *old, *new;
    host_begin();
    HOST_CHECK(count == 3);
    void *library = load(arguments[1], &old);
    pthread_t caller = call(old);
    host_say("ready");
    while (host_line(line, sizeof line)) {
        HOST_CHECK(strcmp(line, "reload") == 0);
        atomic_store(&stop_caller, true);
        pthread_join(caller, NULL);
        dlclose(library);
        HOST_CHECK(rename(arguments[2], arguments[1]) == 0);
        library = load(arguments[1], &new);
        /* Another thread may have mapped something there meanwhile. */
        for (int tries = 0; new != old && tries < 1000; tries++) {
            dlclose(library);
            library = load(arguments[1], &new);
        }
        HOST_CHECK(new == old);
        caller = call(new);
        host_say("reload done");
    }
    atomic_store(&stop_caller, true);
    pthread_join(caller, NULL);
    dlclose(library);
    return host_end();
}
