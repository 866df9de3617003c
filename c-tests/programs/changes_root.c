/* A service that takes an empty directory, its argument, as its root (chroot(2)) and has no umask. It must be profiled with names all
 * the same. The host must see that it is alone in the new root, and that its umask is its own. The hazard: the agent
 * finds no /proc, and the host's root or umask is not what the host has set. Only root may do this. */
// cflags: -O2 -g
#include "burner.h"
#include <sys/stat.h>
#include <unistd.h>

int main(int count, char **words)
{
    char line[64];
    host_begin();
    pthread_t burner = burner_begin();
    bool root = count == 2 && chroot(words[1]) == 0;
    umask(0);
    host_say(root ? "root" : "not root");
    host_say("ready");
    while (host_line(line, sizeof line))
        ;
    if (root)
        HOST_CHECK(access("/proc", F_OK) != 0 && errno == ENOENT);
    HOST_CHECK(umask(0) == 0);
    atomic_store(&host_ending, true);
    pthread_join(burner, NULL);
    return host_end();
}
