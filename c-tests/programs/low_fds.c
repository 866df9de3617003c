/* The host closes its descriptors 0, 1 and 2 and counts on open giving 0, as daemons
 * and shells do, with room for 16 descriptors in all. A descriptor that a profiler
 * opens must never be in the way, not even for a moment. */
// cflags: -O2
// descriptors: 16
#include "burner.h"
#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>

int main(void)
{
    struct rlimit room;
    host_begin();
    HOST_CHECK(getrlimit(RLIMIT_NOFILE, &room) == 0 && room.rlim_cur == 16);
    int input = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 4);
    int output = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 4);
    HOST_CHECK(input > 2 && output > 2);
    pthread_t burner = burner_begin();
    host_say("ready");
    close(STDIN_FILENO);
    close(STDOUT_FILENO);
    close(STDERR_FILENO);

    long rounds = 0, others = 0;
    struct pollfd end = {.fd = input, .events = POLLIN};
    while (rounds == 0 || rounds % 1000 != 0 || poll(&end, 1, 0) == 0) {
        int first = open("/dev/null", O_RDWR);
        int second = open("/dev/null", O_RDWR);
        others += first != 0 || second != 1;
        if (first >= 0)
            close(first);
        if (second >= 0)
            close(second);
        rounds++;
    }
    atomic_store(&host_ending, true);
    pthread_join(burner, NULL);
    HOST_CHECK(dup2(output, STDOUT_FILENO) == STDOUT_FILENO);
    host_say("%ld of %ld opens were given another descriptor", others, rounds);
    HOST_CHECK(others == 0 && rounds >= 1000);
    return host_end();
}
