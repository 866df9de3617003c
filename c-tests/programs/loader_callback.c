/* A thread stays in a callback of dl_iterate_phdr(3), and so holds the loader's lock on its list of objects, for as
 * long as the program lives: longer than any recording. The thread forks there. The host must see its forks return, and
 * the recording must account for every tick. The hazard: a profiler that waits for that lock before it samples takes no
 * sample of any thread. If the thread that forks waits for the profiler in turn, the program hangs. */
// cflags: -O2
// record: samples=200&hz=200
// expect: every tick is accounted for
// expect: every sample of burner has stack burner_main;burn
// expect: every sample of burner is complete
// expect: thread sitter has stack sitter_main;on_object
// expect: every sample of sitter is complete
// record: samples=200&hz=200&mode=cpu
// expect: every sample of burner has stack burner_main;burn
#include "host.h"
#include <link.h>
#include <sched.h>
#include <sys/wait.h>

static volatile uint64_t sink;
static atomic_long forks;

FRAME static int on_object(struct dl_phdr_info *info, size_t size, void *argument)
{
    const struct timespec pause = {0, 5000000};
    (void)info;
    (void)size;
    (void)argument;
    while (!atomic_load(&host_ending)) {
        int status = -1;
        pid_t child = fork();
        HOST_CHECK(child >= 0);
        if (child == 0)
            _exit(7);
        HOST_CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 7);
        atomic_fetch_add(&forks, 1);
        nanosleep(&pause, NULL);
    }
    return 1;
}
FRAME static void *sitter_main(void *argument)
{
    dl_iterate_phdr(on_object, NULL);
    NOT_A_TAIL_CALL();
    return argument;
}
FRAME static void burn(void)
{
    while (!atomic_load(&host_ending))
        sink++;
}
FRAME static void *burner_main(void *argument)
{
    host_arrive();
    burn();
    NOT_A_TAIL_CALL();
    return argument;
}

int main(void)
{
    host_begin();
    pthread_t sitter = host_thread("sitter", sitter_main, NULL);
    pthread_t burner = host_thread("burner", burner_main, NULL);
    host_wait_until_arrived(1);
    while (atomic_load(&forks) == 0)
        sched_yield();
    host_say("ready");
    host_wait_for_end();
    pthread_join(sitter, NULL);
    pthread_join(burner, NULL);
    return host_end();
}
