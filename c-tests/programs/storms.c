/* What profilers deadlock in, in eight threads at once while they are sampled: malloc, unwinding with the C library, loading and
 * unloading libraries, walking the list of loaded objects, threads that are born and cancelled, and forks. A watchdog sees each of
 * them make progress. */
// cflags: -O2 -rdynamic
// libs: -ldl
// library: late_library.c
#include "host.h"
#include <dlfcn.h>
#include <execinfo.h>
#include <link.h>
#include <sys/wait.h>

static const char *path;

FRAME static void allocate(void)
{
    void *blocks[100];
    for (int i = 0; i < 100; i++)
        blocks[i] = malloc((size_t)(i * i * 13 % 70000));
    for (int i = 0; i < 100; i++)
        free(blocks[i]);
}
FRAME static void unwind(void)
{
    void *frames[32];
    for (int i = 0; i < 20; i++)
        HOST_CHECK(backtrace(frames, 32) >= 3);
}
FRAME static void load(void)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    HOST_CHECK(library != NULL && dlsym(library, "late_function") != NULL && dlclose(library) == 0);
}
static int on_object(struct dl_phdr_info *info, size_t size, void *argument)
{
    (void)size;
    *(size_t *)argument += info->dlpi_phnum;
    return 0;
}
FRAME static void list_objects(void)
{
    size_t headers = 0;
    dl_iterate_phdr(on_object, &headers);
    HOST_CHECK(headers > 0);
}
static void *short_main(void *argument)
{
    for (;;)
        free(malloc(100)), pthread_testcancel();
    return argument;
}
FRAME static void cancel(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, short_main, NULL) == 0) {
        pthread_cancel(thread);
        pthread_join(thread, NULL);
    }
}
FRAME static void make_child(void)
{
    int status = 0;
    pid_t child = fork();
    HOST_CHECK(child >= 0);
    if (child == 0) {
        free(malloc(5000));
        _exit(3);
    }
    HOST_CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 3);
}

static struct {
    const char *name;
    void (*once)(void);
    atomic_long rounds;
} storms[] = {
    {"allocating", allocate, 0}, {"allocating", allocate, 0}, {"unwinding", unwind, 0},  {"unwinding", unwind, 0},
    {"loading", load, 0},        {"listing", list_objects, 0}, {"cancelling", cancel, 0}, {"forking", make_child, 0},
};
enum { STORMS = sizeof storms / sizeof *storms };

FRAME static void *storm_main(void *argument)
{
    size_t storm = (size_t)argument;
    while (!atomic_load(&host_ending)) {
        storms[storm].once();
        atomic_fetch_add(&storms[storm].rounds, 1);
    }
    return NULL;
}
static void *watchdog_main(void *argument)
{
    const struct timespec patience = {10, 0};
    long before[STORMS];
    for (;;) {
        for (int i = 0; i < STORMS; i++)
            before[i] = atomic_load(&storms[i].rounds);
        nanosleep(&patience, NULL);
        for (int i = 0; i < STORMS; i++) {
            if (atomic_load(&storms[i].rounds) == before[i])
                host_say("failed: no progress in ten seconds: %s", storms[i].name);
        }
    }
    return argument;
}

int main(int count, char **arguments)
{
    pthread_t threads[STORMS];
    void *frames[4];
    host_begin();
    HOST_CHECK(count == 2);
    path = arguments[1];
    backtrace(frames, 4);
    for (size_t i = 0; i < STORMS; i++)
        threads[i] = host_thread(storms[i].name, storm_main, (void *)i);
    pthread_detach(host_thread("watchdog", watchdog_main, NULL));
    host_say("ready");
    host_wait_for_end();
    for (size_t i = 0; i < STORMS; i++)
        pthread_join(threads[i], NULL);
    return host_end();
}
