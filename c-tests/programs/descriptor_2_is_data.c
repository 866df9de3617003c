/* A daemon closes its standard error, and the next file that it opens has descriptor 2: its data. The hazard: what a library has to
 * say stands between its records. The first argument is a folder. SWIPR_OUTPUT names a file in it that cannot be written at the end. */
// cflags: -O2
#include "host.h"
#include <fcntl.h>
#include <sys/stat.h>

int main(int count, char **arguments)
{
    char path[4096];
    HOST_CHECK(count == 2);
    host_begin();
    close(STDERR_FILENO);
    snprintf(path, sizeof path, "%s/data", arguments[1]);
    HOST_CHECK(open(path, O_WRONLY | O_CREAT, 0600) == STDERR_FILENO);
    HOST_CHECK(write(STDERR_FILENO, "first\n", 6) == 6);
    snprintf(path, sizeof path, "%s/life.%d.folded", arguments[1], getpid());
    HOST_CHECK(mkdir(path, 0700) == 0);
    strcat(path, "/x");
    HOST_CHECK(mkdir(path, 0700) == 0);
    host_say("ready");
    host_wait_for_end();
    HOST_CHECK(write(STDERR_FILENO, "last\n", 5) == 5);
    return host_end();
}
