/* A thread that sleeps by syscall(2), with a second time-out in a register that the call does not use. Another thread
 * watches its state. The host must never see the thread asleep with all signals blocked. The hazard: the agent's
 * handler, in which all signals are blocked, sleeps. A sleep may last for ever, and no signal could end the program
 * meanwhile. */
// cflags: -O2
// record: samples=6000&hz=2000&mode=cpu
// expect: stats threads >= 1
#include "host.h"

static char status_of_sleeper[64];
static atomic_long blocked;
static volatile uint64_t sink;

static void *sleeper_main(void *argument)
{
    const struct timespec nothing = {0, 0}, moment = {0, 50000000};
    snprintf(status_of_sleeper, sizeof status_of_sleeper, "/proc/self/task/%ld/status", (long)syscall(SYS_gettid));
    host_arrive();
    while (!atomic_load(&host_ending)) {
        for (int i = 0; i < 20000; i++)
            sink++;
        syscall(SYS_nanosleep, &moment, 0L, 0L, &nothing);
    }
    return argument;
}
static void *watcher_main(void *argument)
{
    const struct timespec moment = {0, 2000000};
    host_arrive();
    while (!atomic_load(&host_ending)) {
        char text[4096];
        FILE *file = fopen(status_of_sleeper, "r");
        size_t size = file ? fread(text, 1, sizeof text - 1, file) : 0;
        text[size] = 0;
        if (file)
            fclose(file);
        if (strstr(text, "State:\tS") && strstr(text, "SigBlk:\tfffffff"))
            atomic_fetch_add(&blocked, 1);
        nanosleep(&moment, NULL);
    }
    return argument;
}

int main(void)
{
    host_begin();
    pthread_t sleeper = host_thread("sleeper", sleeper_main, NULL);
    host_wait_until_arrived(1);
    pthread_t watcher = host_thread("watcher", watcher_main, NULL);
    host_say("ready");
    host_wait_for_end();
    pthread_join(sleeper, NULL);
    pthread_join(watcher, NULL);
    HOST_CHECK(atomic_load(&blocked) == 0);
    return host_end();
}
