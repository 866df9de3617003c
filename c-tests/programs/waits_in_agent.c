/* A preloaded program with a thread that waits in a function of the C interface, swipr_record_to_file, for some
 * seconds. The argument is an empty directory. The hazard: the stack ends in the library, whose unwind table is built
 * only when a stack meets it. */
// cflags: -O2
// libs: -lswipr
#include "host.h"
#include <swipr.h>

static char path[512];

static void *waiter_main(void *unused)
{
    (void)unused;
    HOST_CHECK(swipr_record_to_file(path, "folded", 400, 10000) == SWIPR_OK);
    return NULL;
}

int main(int count, char **words)
{
    char line[64];
    host_begin();
    HOST_CHECK(count == 2);
    snprintf(path, sizeof path, "%s/own.folded", words[1]);
    pthread_t waiter = host_thread("waiter", waiter_main, NULL);
    host_say("ready");
    while (host_line(line, sizeof line))
        ;
    pthread_join(waiter, NULL);
    return host_end();
}
