/* Threads that compute a known number: quota THREADS ROUNDS. Says "ready" when all are there,
   starts them on a line from stdin, prints what they found, and ends at the end of stdin, so
   that every thread is there during the whole recording. EINTR and a changed errno are
   reported as well. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static unsigned long rounds, found[256];
static unsigned threads, spoilt;
static int gate[2], way_out[2];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

__attribute__((noinline)) static unsigned long turn(unsigned long value) {
    for (int i = 0; i < 1000; i++) value = value * 6364136223846793005ul + 1442695040888963407ul;
    return value;
}

static void *works(void *argument) {
    unsigned long number = (unsigned long)argument, value = number;
    char byte;
    if (read(gate[0], &byte, 1) < 0) __atomic_add_fetch(&spoilt, 1, __ATOMIC_RELAXED);
    errno = 4711;
    for (unsigned long i = 0; i < rounds; i++) value = turn(value);
    if (errno != 4711) __atomic_add_fetch(&spoilt, 1, __ATOMIC_RELAXED);
    pthread_mutex_lock(&lock);
    found[number] = value;
    pthread_mutex_unlock(&lock);
    if (read(way_out[0], &byte, 1) < 0) __atomic_add_fetch(&spoilt, 1, __ATOMIC_RELAXED);
    return NULL;
}

static unsigned long finished(void) {
    unsigned long count = 0;
    pthread_mutex_lock(&lock);
    for (unsigned i = 0; i < threads; i++) count += found[i] != 0;
    pthread_mutex_unlock(&lock);
    return count;
}

int main(int count, char **arguments) {
    char line[16];
    pthread_t ids[256];
    if (count != 3 || pipe(gate) || pipe(way_out)) return 2;
    threads = (unsigned)atoi(arguments[1]);
    rounds = strtoul(arguments[2], NULL, 10);
    for (unsigned long i = 0; i < threads; i++)
        if (pthread_create(&ids[i], NULL, works, (void *)i)) return 2;
    printf("ready\n");
    fflush(stdout);
    if (!fgets(line, sizeof line, stdin)) return 2;
    for (unsigned i = 0; i < threads; i++) if (write(gate[1], "", 1) != 1) return 2;
    if (fgets(line, sizeof line, stdin)) return 2; /* the end of stdin: nobody records any more */
    while (finished() < threads) if (usleep(1000)) spoilt++;
    close(way_out[1]);
    unsigned long sum = 0;
    for (unsigned i = 0; i < threads; i++) {
        pthread_join(ids[i], NULL);
        sum = sum * 31 + found[i];
    }
    printf("%lx spoilt=%u\n", sum, spoilt);
    return 0;
}
