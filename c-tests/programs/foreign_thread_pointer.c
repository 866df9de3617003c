/* A thread made by clone(2) has a thread pointer of its own, with none of the C library's data at it, and ends by syscall(3), which
 * needs none. The hazard: a library in front of syscall(3) looks for its thread-local data there. */
// cflags: -O2
// record: samples=200&hz=200
// expect: every sample of burner has stack burner_main;work
#include "burner.h"
#include <sched.h>

static int ends(void *argument)
{
    (void)argument;
    syscall(SYS_exit, 0);
    return 0;
}

int main(void)
{
    static char stack[64 << 10] __attribute__((aligned(16)));
    static char own[8 << 10] __attribute__((aligned(64)));
    void *pointer = own + sizeof own / 2;
    *(void **)pointer = pointer;
    host_begin();
    pthread_t burner = burner_begin();
    host_say("ready");
    for (int i = 0; i < 100; i++) {
        volatile pid_t lives = 1;
        const int flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM
            | CLONE_SETTLS | CLONE_CHILD_CLEARTID;
        HOST_CHECK(clone(ends, stack + sizeof stack, flags, NULL, NULL, pointer, &lives) > 0);
        while (lives != 0)
            sched_yield();
    }
    host_wait_for_end();
    pthread_join(burner, NULL);
    return host_end();
}
