/* 2,000 blocked threads: more than any fixed table a profiler may have. The recording must show all of them at every
 * tick, though not every sweep observes each. */
// cflags: -O2
// record: samples=10&hz=20
// expect: threads >= 2001
// expect: samples >= 20000
// expect: every sample of worker has stack worker_main;wait_for_work
// expect: every sample of worker is complete
// record: samples=300&hz=100&format=folded
// expect: every tick is accounted for
// expect: samples >= 600300
// expect: share of worker with stack worker_main;wait_for_work >= 1
#include "host.h"
#include <semaphore.h>

enum { THREADS = 2000 };
static sem_t work;

FRAME static void wait_for_work(void)
{
    host_arrive();
    sem_wait(&work);
    NOT_A_TAIL_CALL();
}
FRAME static void *worker_main(void *argument)
{
    wait_for_work();
    NOT_A_TAIL_CALL();
    return argument;
}

int main(void)
{
    static pthread_t threads[THREADS];
    pthread_attr_t attributes;
    host_begin();
    sem_init(&work, 0, 0);
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 64 * 1024);
    for (int i = 0; i < THREADS; i++) {
        errno = pthread_create(&threads[i], &attributes, worker_main, NULL);
        HOST_CHECK(errno == 0);
        pthread_setname_np(threads[i], "worker");
    }
    host_wait_until_blocked(THREADS);
    host_say("ready");
    host_wait_for_end();
    for (int i = 0; i < THREADS; i++)
        sem_post(&work);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    return host_end();
}
