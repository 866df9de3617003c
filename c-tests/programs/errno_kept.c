/* A handler that touches errno changes what the interrupted code sees. */
// cflags: -O2
// record: samples=1000&hz=1000
// expect: thread checker has stack checker_main;keep_errno
// expect: share of checker with stack keep_errno >= 0.9
#include "host.h"

static atomic_long changes;
static atomic_ulong rounds;

FRAME static void keep_errno(void)
{
    for (int value = 1; !atomic_load(&host_ending); value = value % 120 + 1) {
        errno = value;
        for (int i = 0; i < 50; i++)
            NOT_A_TAIL_CALL();
        if (errno != value)
            atomic_fetch_add(&changes, 1);
        atomic_fetch_add(&rounds, 1);
    }
}
FRAME static void *checker_main(void *argument)
{
    keep_errno();
    NOT_A_TAIL_CALL();
    return argument;
}

int main(void)
{
    pthread_t threads[2];
    host_begin();
    for (int i = 0; i < 2; i++)
        threads[i] = host_thread("checker", checker_main, NULL);
    while (atomic_load(&rounds) < 1000)
        NOT_A_TAIL_CALL();
    host_say("ready");
    host_wait_for_end();
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    HOST_CHECK(atomic_load(&changes) == 0);
    return host_end();
}
