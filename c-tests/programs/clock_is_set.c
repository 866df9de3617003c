/* The time of day is set to ten minutes later than it is, when the runner says so: as after a pause of the machine. */
// cflags: -O2 -rdynamic
#include "host.h"

static atomic_int ahead_s;

int clock_gettime(clockid_t clock, struct timespec *time)
{
    int result = (int)syscall(SYS_clock_gettime, clock, time);
    if (result == 0 && clock == CLOCK_REALTIME)
        time->tv_sec += atomic_load(&ahead_s);
    return result;
}

int main(void)
{
    host_begin();
    host_say("ready");
    char line[64];
    while (host_line(line, sizeof line)) {
        atomic_store(&ahead_s, 600);
        host_say("set");
    }
    return host_end();
}
