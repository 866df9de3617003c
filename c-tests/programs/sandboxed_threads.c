/* A thread that enters a sandbox (seccomp(2)) while it is recorded, and starts threads that start threads: the filter, which kills for making
 * timers, holds for all of them. The host must live. The hazard: while a recording runs, new threads make timers (pthread_create). */
// cflags: -O2
// record: seconds=3&hz=500
// expect: every sample of burner has stack burner_main
#include "burner.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>

FRAME static void *last_main(void *argument)
{
    for (int i = 0; i < 100000; i++)
        sink++;
    return argument;
}
FRAME static void *middle_main(void *argument)
{
    pthread_t last;
    HOST_CHECK(pthread_create(&last, NULL, last_main, argument) == 0);
    HOST_CHECK(pthread_join(last, NULL) == 0);
    return argument;
}
FRAME static void *sandboxed_main(void *argument)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_timer_create, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = sizeof filter / sizeof *filter, .filter = filter};
    /* The recording has begun by then. */
    for (int ms = 0; ms < 1000 && !atomic_load(&host_ending); ms++)
        usleep(1000);
    HOST_CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    HOST_CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
    while (!atomic_load(&host_ending)) {
        pthread_t middle;
        HOST_CHECK(pthread_create(&middle, NULL, middle_main, argument) == 0);
        HOST_CHECK(pthread_join(middle, NULL) == 0);
    }
    return argument;
}

int main(void)
{
    host_begin();
    pthread_t burner = burner_begin();
    pthread_t sandboxed = host_thread("sandboxed", sandboxed_main, NULL);
    host_say("ready");
    host_wait_for_end();
    pthread_join(sandboxed, NULL);
    pthread_join(burner, NULL);
    return host_end();
}
