/* Threads that start and end all the time. The host must see each of them end with its result. The hazard: most of what
 * the sampler knows of them is out of date. A thread whose timer it is about to arm may be gone. */
// cflags: -O2
// record: samples=1000&hz=1000
// expect: samples >= 500
// expect: thread spawner has stack spawner_main
// expect: every sample of steady has stack steady_main;steady_work
// expect: every sample of steady is complete
#include "host.h"

#include <sched.h>

static volatile uint64_t sink;
static atomic_ulong born;

FRAME static void *short_life(void *argument)
{
    for (int i = 0; i < 20000; i++)
        sink++;
    atomic_fetch_add(&born, 1);
    return argument;
}
FRAME static void *spawner_main(void *argument)
{
    while (!atomic_load(&host_ending)) {
        pthread_t threads[4];
        int token[4];
        for (int i = 0; i < 4; i++) {
            errno = pthread_create(&threads[i], NULL, short_life, &token[i]);
            HOST_CHECK(errno == 0);
        }
        for (int i = 0; i < 4; i++) {
            void *result = NULL;
            pthread_join(threads[i], &result);
            HOST_CHECK(result == &token[i]);
        }
    }
    return argument;
}
FRAME static void steady_work(void)
{
    while (!atomic_load(&host_ending))
        sink++;
}
FRAME static void *steady_main(void *argument)
{
    host_arrive();
    steady_work();
    NOT_A_TAIL_CALL();
    return argument;
}

int main(void)
{
    pthread_t spawners[3];
    host_begin();
    pthread_t steady = host_thread("steady", steady_main, NULL);
    while (sink == 0)
        NOT_A_TAIL_CALL();
    for (int i = 0; i < 3; i++)
        spawners[i] = host_thread("spawner", spawner_main, NULL);
    while (atomic_load(&born) == 0)
        sched_yield();
    host_say("ready");
    host_wait_for_end();
    for (int i = 0; i < 3; i++)
        pthread_join(spawners[i], NULL);
    pthread_join(steady, NULL);
    HOST_CHECK(atomic_load(&born) > 0);
    return host_end();
}
