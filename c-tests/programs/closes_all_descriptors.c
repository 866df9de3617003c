/* A host that closes what it has not opened, with close_range(2), close(2) and dup2(2), again and again while it is
 * recorded. The host must find no descriptor but its own, and get the numbers that it counts on. The recording must
 * continue. The hazard: a descriptor of the agent's is among those that the host closes. */
// cflags: -O2
// record: samples=500&hz=500
// expect: every sample of burner has stack burner_main;work
// expect: every sample of burner is complete
// record: samples=500&hz=500
// expect: every sample of burner has stack burner_main;work
#include "burner.h"
#include <fcntl.h>
#include <poll.h>

int main(void)
{
    host_begin();
    pthread_t burner = burner_begin();
    host_say("ready");
    struct pollfd end = {.fd = STDIN_FILENO, .events = POLLIN};
    long foreign = 0;
    int ended;
    do {
        syscall(SYS_close_range, 3u, ~0u, 0u);
        for (int fd = 3; fd < 256; fd++)
            foreign += close(fd) == 0;
        int mine = open("/dev/null", O_RDWR | O_CLOEXEC);
        HOST_CHECK(mine == 3);
        for (int fd = 4; fd < 64; fd++)
            HOST_CHECK(dup2(mine, fd) == fd);
        for (int fd = 3; fd < 64; fd++)
            HOST_CHECK(close(fd) == 0);
        ended = poll(&end, 1, 1);
        HOST_CHECK(ended >= 0);
    } while (ended == 0);
    atomic_store(&host_ending, true);
    pthread_join(burner, NULL);
    HOST_CHECK(foreign == 0);
    return host_end();
}
