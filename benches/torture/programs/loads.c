/* loads COUNT OBJECT: loads and unloads a shared object so many times while two threads call what is in it, or compute. Prints what it
 * summed up, which does not depend on profilers. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

static atomic_bool over;
static atomic_ulong computed;

static void *compute(void *argument)
{
    while (!atomic_load(&over))
        atomic_fetch_add(&computed, 1);
    return argument;
}
int main(int count, char **arguments)
{
    pthread_t thread;
    long rounds = count == 3 ? atol(arguments[1]) : 0;
    long sum = 0;
    pthread_create(&thread, NULL, compute, NULL);
    for (long i = 0; i < rounds; i++) {
        void *object = dlopen(arguments[2], RTLD_NOW);
        long (*work)(long) = object ? (long (*)(long))dlsym(object, "work") : NULL;
        if (!work)
            return 1;
        sum += work(i);
        if (dlclose(object) != 0 || dlopen(arguments[2], RTLD_NOW | RTLD_NOLOAD))
            return 2;
    }
    atomic_store(&over, true);
    pthread_join(thread, NULL);
    printf("%ld rounds, sum %ld\n", rounds, sum);
    return 0;
}
