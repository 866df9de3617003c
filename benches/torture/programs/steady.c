/* A small service that does the same from begin to end: threads that wake up often and do a little, threads that only wait,
   and one thread after the other that lives for a moment, without a pause in its first minutes: so that samples meet all
   that it ever does early, the loader's part in starting threads too. It asks for no memory after its first second. Runs until
   the end of stdin. */
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static volatile unsigned long sink;
static int over;

static int goes_on(void) { return !__atomic_load_n(&over, __ATOMIC_RELAXED); }

static void *works(void *argument) {
    struct timespec pause = {0, 20000000};
    while (goes_on()) {
        for (int i = 0; i < 50000; i++) sink++;
        nanosleep(&pause, NULL);
    }
    return argument;
}

static void *waits(void *argument) {
    while (goes_on()) poll(NULL, 0, 1000);
    return argument;
}

static void *lives_for_a_moment(void *argument) {
    for (int i = 0; i < 100000; i++) sink++;
    return argument;
}

/* Children without a pause in its first minutes. */
#define EARLY_SECONDS 120

static void *has_children(void *argument) {
    struct timespec pause = {0, 200000000}, began, now;
    clock_gettime(CLOCK_MONOTONIC, &began);
    while (goes_on()) {
        pthread_t child;
        if (pthread_create(&child, NULL, lives_for_a_moment, NULL) == 0) pthread_join(child, NULL);
        clock_gettime(CLOCK_MONOTONIC, &now);
        if (now.tv_sec - began.tv_sec >= EARLY_SECONDS) nanosleep(&pause, NULL);
    }
    return argument;
}

int main(void) {
    pthread_t threads[9];
    char line[64];
    for (int i = 0; i < 9; i++)
        if (pthread_create(&threads[i], NULL, i < 4 ? works : i < 8 ? waits : has_children, NULL)) return 2;
    while (fgets(line, sizeof line, stdin)) {}
    __atomic_store_n(&over, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < 9; i++) pthread_join(threads[i], NULL);
    return 0;
}
