/* The agent is stopped and started again, many times and at once: each start that says
 * that it worked did, and nothing of the lives before is left. */
// cflags: -O2
// preload: no
// libs: -lswipr
#include "host.h"
#include <sys/stat.h>
#include <swipr.h>

int main(void)
{
    struct timespec moment = {.tv_nsec = 2000000};
    char path[512];
    struct stat file;
    host_begin();
    for (int cycle = 0; cycle < 50; cycle++) {
        HOST_CHECK(swipr_start(NULL) == SWIPR_OK);
        /* Long enough for a thread of the life before to say that it has ended. */
        nanosleep(&moment, NULL);
        HOST_CHECK(swipr_socket_path(path, sizeof path) > 0);
        HOST_CHECK(stat(path, &file) == 0 && S_ISSOCK(file.st_mode));
        HOST_CHECK(swipr_start(NULL) == SWIPR_ALREADY_RUNNING);
        HOST_CHECK(swipr_stop() == SWIPR_OK);
        HOST_CHECK(stat(path, &file) != 0 && errno == ENOENT);
    }
    while (host_threads() > 1)
        nanosleep(&moment, NULL);
    host_say("ready");
    host_wait_for_end();
    return host_end();
}
