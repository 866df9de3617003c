/* 45 threads as a service has them: 2 work 3 ms of each 8 or so, 8 wake ten times a second, the others wait. */
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static volatile unsigned long sink;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;

__attribute__((noinline)) static void step(int depth)
{
    if (depth > 0) {
        step(depth - 1);
    } else {
        for (int i = 0; i < 2000; i++)
            sink = sink * 6364136223846793005UL + 1;
    }
    sink++;
}

static void rest(long us)
{
    struct timespec time = {us / 1000000, us % 1000000 * 1000};
    nanosleep(&time, NULL);
}

static long used_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec * 1000000000L + now.tv_nsec;
}

static void *working(void *seed)
{
    for (;;) {
        for (long begun = used_ns(); used_ns() - begun < 3000000;)
            step(rand_r(seed) % 20);
        rest(5000);
    }
}

static void *ticking(void *number)
{
    for (;;) {
        rest(100000 + (long)number * 7000);
        step(3);
    }
}

static void *waiting(void *nothing)
{
    pthread_mutex_lock(&mutex);
    for (;;)
        pthread_cond_wait(&never, &mutex);
    return nothing;
}

int main(void)
{
    static unsigned seeds[2] = {1, 2};
    pthread_t thread;
    for (int i = 0; i < 2; i++)
        pthread_create(&thread, NULL, working, &seeds[i]);
    for (long i = 0; i < 8; i++)
        pthread_create(&thread, NULL, ticking, (void *)i);
    for (int i = 0; i < 34; i++)
        pthread_create(&thread, NULL, waiting, NULL);
    for (;;)
        pause();
}
