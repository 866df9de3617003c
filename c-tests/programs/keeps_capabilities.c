/* A service with one thread that gives up root but keeps the right to change users (prctl(2), PR_SET_KEEPCAPS;
 * capset(2)), and changes them afterwards. The host must see these calls succeed. The hazard: glibc changes all threads
 * of a process, and aborts the process if one of them is not allowed to do what the others are. A thread of the agent's
 * must not be that one, also where the threads cannot be counted: in an empty directory, its argument, that it takes
 * as its root. */
// cflags: -O2
#include "host.h"
#include <linux/capability.h>
#include <sys/prctl.h>

static volatile uint64_t sink;

static int keep_only(uint32_t capabilities)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2] = {{.effective = capabilities, .permitted = capabilities}};
    return (int)syscall(SYS_capset, &header, data);
}

int main(int count, char **words)
{
    host_begin();
    if (geteuid() == 0) {
        host_say("root");
        HOST_CHECK(count < 2 || chroot(words[1]) == 0);
        uint32_t kept = 1u << CAP_SETUID | 1u << CAP_SETGID;
        HOST_CHECK(prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) == 0);
        HOST_CHECK(setresuid(1000, 1000, 1000) == 0);
        HOST_CHECK(keep_only(kept) == 0);
        HOST_CHECK(setresuid(33, 33, 33) == 0);
        HOST_CHECK(getuid() == 33);
        HOST_CHECK(keep_only(0) == 0);
        HOST_CHECK(setresuid(34, 34, 34) != 0 && errno == EPERM);
    } else {
        host_say("not root");
    }
    host_say("ready");
    host_wait_for_end();
    return host_end();
}
