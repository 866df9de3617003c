/* threads COUNT SECONDS: so many threads, each of which computes a little, waits a little, and checks what its calls say. Prints how many
 * calls failed. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static atomic_bool over;
static atomic_ulong failed, calls;

static void *live(void *argument)
{
    volatile unsigned long sum = 0;
    unsigned seed = (unsigned)(long)argument;
    while (!atomic_load(&over)) {
        for (int i = 0; i < 2000; i++)
            sum += seed;
        seed = seed * 1103515245 + 12345;
        struct timespec wait = {0, 50000000 + (long)(seed >> 16) * 2000};
        errno = 0;
        if (clock_nanosleep(CLOCK_MONOTONIC, 0, &wait, NULL) != 0 || errno != 0)
            atomic_fetch_add(&failed, 1);
        atomic_fetch_add(&calls, 1);
    }
    return argument;
}
int main(int count, char **arguments)
{
    long threads = count == 3 ? atol(arguments[1]) : 0, made = 0;
    pthread_t *all = calloc((size_t)threads, sizeof *all);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 65536);
    while (made < threads && pthread_create(&all[made], &attributes, live, (void *)made) == 0)
        made++;
    struct timespec time = {atol(arguments[2]), 0};
    while (nanosleep(&time, &time) != 0)
        ;
    atomic_store(&over, true);
    for (long i = 0; i < made; i++)
        pthread_join(all[i], NULL);
    printf("%ld threads, %s, %lu failed\n", made, atomic_load(&calls) > 0 ? "many calls" : "no calls", atomic_load(&failed));
    return 0;
}
