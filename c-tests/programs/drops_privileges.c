/* A service that starts as root and becomes an ordinary user (setgroups(2), setgid(2), setuid(2)). The host must see
 * that no thread of the process keeps what the process gave up, and that it cannot become root again. It must still be
 * profiled. The hazard: a thread of the agent's keeps root. Where the runner is not root there is nothing to drop. */
// cflags: -O2
#include "all_threads.h"
#include "burner.h"
#include <grp.h>

enum { USER = 65534 };

int main(void)
{
    char line[64];
    host_begin();
    bool root = geteuid() == 0, dropped = false;
    pthread_t burner = burner_begin();
    host_say(root ? "root" : "not root");
    host_say("ready");
    while (host_line(line, sizeof line)) {
        if (root) {
            HOST_CHECK(setgroups(0, NULL) == 0 && setgid(USER) == 0 && setuid(USER) == 0);
            HOST_CHECK(setuid(0) != 0 && errno == EPERM && seteuid(0) != 0 && setgid(0) != 0);
            check_all_threads("\nUid:\t65534\t65534\t65534\t65534\n");
            check_all_threads("\nGid:\t65534\t65534\t65534\t65534\n");
            check_all_threads("\nCapPrm:\t0000000000000000\n");
        }
        dropped = root;
        host_say("dropped");
    }
    if (dropped)
        check_all_threads("\nUid:\t65534\t65534\t65534\t65534\n");
    atomic_store(&host_ending, true);
    pthread_join(burner, NULL);
    return host_end();
}
