/* Closes once, when it is told to, whatever it has not opened itself, as daemons do. It can be recorded afterwards, also
 * where the agent's descriptors are in the host's table. */
// cflags: -O2
#include "burner.h"

int main(void)
{
    host_begin();
    pthread_t burner = burner_begin();
    host_say("ready");
    HOST_CHECK(getchar() == 'c');
    for (int fd = 3; fd < 1024; fd++)
        close(fd);
    host_say("closed");
    host_wait_for_end();
    pthread_join(burner, NULL);
    return host_end();
}
