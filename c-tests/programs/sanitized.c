/* A program that is compiled with a sanitizer, which has a malloc, a signal handling and a shadow of all memory of its own: what a
 * profiler does beside it is no error of the program's. */
// cflags: -O1
#include "host.h"

static volatile uint64_t sink;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t shared;

FRAME static void work(void)
{
    for (int i = 0; i < 1000; i++)
        sink++;
    pthread_mutex_lock(&lock);
    shared++;
    pthread_mutex_unlock(&lock);
}
FRAME static void *worker_main(void *argument)
{
    while (!atomic_load(&host_ending))
        work();
    return argument;
}
FRAME static void *allocator_main(void *argument)
{
    while (!atomic_load(&host_ending)) {
        char *memory = malloc(1000);
        HOST_CHECK(memory != NULL);
        memset(memory, 1, 1000);
        free(memory);
        pthread_mutex_lock(&lock);
        shared++;
        pthread_mutex_unlock(&lock);
    }
    return argument;
}

int main(void)
{
    host_begin();
    pthread_t worker = host_thread("worker", worker_main, NULL);
    pthread_t allocator = host_thread("allocator", allocator_main, NULL);
    host_say("ready");
    host_wait_for_end();
    pthread_join(worker, NULL);
    pthread_join(allocator, NULL);
    return host_end();
}
