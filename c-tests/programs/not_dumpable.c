/* A process that is not dumpable (prctl(2), PR_SET_DUMPABLE). Unless it is root, it cannot see where its own threads
 * are blocked. The recording must show the stacks of running threads; blocked threads have none. The host must see each
 * sleep last its time. The hazard: a blocked thread is signalled, because its stack cannot be copied. */
// cflags: -O2
// record: samples=500&hz=500
// expect: every sample of burner has stack burner_main;work
#include "burner.h"
#include <sys/prctl.h>

FRAME static void nap(void)
{
    const struct timespec moment = {0, 20000000};
    HOST_CHECK(nanosleep(&moment, NULL) == 0);
}
FRAME static void *sleeper_main(void *argument)
{
    while (!atomic_load(&host_ending))
        nap();
    return argument;
}

int main(void)
{
    host_begin();
    if (geteuid() == 0)
        HOST_CHECK(setresuid(65534, 65534, 65534) == 0);
    HOST_CHECK(prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0);
    pthread_t burner = burner_begin();
    pthread_t sleeper = host_thread("sleeper", sleeper_main, NULL);
    host_say("ready");
    host_wait_for_end();
    pthread_join(burner, NULL);
    pthread_join(sleeper, NULL);
    return host_end();
}
