/* The executable is deleted while it runs, as an upgrade does: its functions keep their
 * names, which the kernel's link to the file still leads to. */
// cflags: -O2 -Wl,--build-id=none
// record: samples=200&hz=200
// expect: every sample of burner has stack burner_main;burn
// expect: every sample of burner is complete
// expect: thread main has stack _start;main;host_wait_for_end
// expect: share of named frames in deleted_executable >= 0.99
#include "host.h"

static volatile uint64_t sink;

FRAME static void burn(void)
{
    while (!atomic_load(&host_ending))
        sink++;
}
FRAME static void *burner_main(void *argument)
{
    burn();
    NOT_A_TAIL_CALL();
    return argument;
}

int main(int count, char **arguments)
{
    host_begin();
    HOST_CHECK(count == 1);
    /* A copy, because the runner starts the program more than once. */
    if (strcmp(arguments[0], "copy") != 0) {
        char copy[4096], command[8192];
        snprintf(copy, sizeof copy, "%s.%d/deleted_executable", arguments[0], (int)getpid());
        snprintf(command, sizeof command, "mkdir '%s.%d' && cp '%s' '%s'", arguments[0],
                 (int)getpid(), arguments[0], copy);
        HOST_CHECK(system(command) == 0);
        execl(copy, "copy", NULL);
        HOST_CHECK(!"exec");
    }
    char path[4096];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    HOST_CHECK(length > 0);
    path[length] = 0;
    HOST_CHECK(unlink(path) == 0);
    pthread_t burner = host_thread("burner", burner_main, NULL);
    while (sink == 0)
        NOT_A_TAIL_CALL();
    host_say("ready");
    host_wait_for_end();
    pthread_join(burner, NULL);
    return host_end();
}
