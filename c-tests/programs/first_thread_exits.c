/* The only thread ends by the system call itself, without the C library's destructors, as strict seccomp wants it. The
 * process ends with that thread's status. */
// cflags: -O2
#include "host.h"
#include <sys/syscall.h>

int main(void)
{
    host_begin();
    host_say("ready");
    host_wait_for_end();
    host_say("ok");
    syscall(SYS_exit, 5);
}
