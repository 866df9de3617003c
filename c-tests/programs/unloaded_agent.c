/* A program that loads the agent with dlopen(3), uses it and unloads it, again and again. The agent must stay loaded,
 * because its threads and its handler are there, and work when it is loaded again. The hazard: its code is unmapped
 * while it runs. The first argument is the library. */
// cflags: -O2 -rdynamic
// libs: -ldl
// preload: no
#include "burner.h"
#include <dlfcn.h>

int main(int count, char **arguments)
{
    host_begin();
    HOST_CHECK(count == 2);
    pthread_t burner = burner_begin();
    int (*start)(const void *) = NULL;
    for (int i = 0; i < 1000; i++) {
        void *library = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
        HOST_CHECK(library != NULL);
        *(void **)&start = dlsym(library, "swipr_start");
        HOST_CHECK(start != NULL);
        if (i == 0)
            HOST_CHECK(start(NULL) == 0);
        HOST_CHECK(dlclose(library) == 0);
    }
    HOST_CHECK(dlopen(arguments[1], RTLD_NOW | RTLD_NOLOAD) != NULL);
    host_say("ready");
    host_wait_for_end();
    pthread_join(burner, NULL);
    return host_end();
}
