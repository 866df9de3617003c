/* A host whose user may not queue signals (setrlimit(2), RLIMIT_SIGPENDING): no timer can be made. Its threads are seen in system calls only,
 * their running time is `[not sampled]`, and the host sees nothing of it. The hazard: a signal without its value, or a failed call. */
// cflags: -O2
// record: seconds=2&hz=500
// expect: every sample of sleeper has stack sleeper_main;sleep_long
// expect: every sample of sleeper is complete
// expect: stats unsampled_cpu_ns >= 1
#include "burner.h"
#include <sys/resource.h>

FRAME static void sleep_long(void)
{
    const struct timespec time = {3600, 0};
    nanosleep(&time, NULL);
    NOT_A_TAIL_CALL();
}
FRAME static void *sleeper_main(void *argument)
{
    host_arrive();
    sleep_long();
    NOT_A_TAIL_CALL();
    return argument;
}

int main(void)
{
    host_begin();
    struct rlimit none = {0, 0};
    HOST_CHECK(setrlimit(RLIMIT_SIGPENDING, &none) == 0);
    pthread_t burner = burner_begin();
    host_thread("sleeper", sleeper_main, NULL);
    host_wait_until_arrived(1);
    host_say("ready");
    host_wait_for_end();
    pthread_join(burner, NULL);
    return host_end();
}
