/* What the programs here share: they know what they did, and say so for each line on stdin. */
#ifndef SWIPR_ACCURACY_TRUTH_H
#define SWIPR_ACCURACY_TRUTH_H
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#ifndef COUNT
#define COUNT 10
#endif

/* What was done so far, by cause. */
static volatile unsigned long long truth[COUNT];

/* What counts from some time on, and is not in the truth yet: a cause and that time. */
static volatile unsigned long long since;
static volatile int doing = COUNT;

__attribute__((unused)) static unsigned long long now(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return (unsigned long long)time.tv_sec * 1000000000ull + (unsigned long long)time.tv_nsec;
}

/* What is brought up to date before an answer, if anything. */
static void (*refresh)(void);

/* Names of threads, for the samples; their numbers are those of their entries. */
static void start(void *(*body)(void *), unsigned long number, const char *name) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, body, (void *)number)) exit(2);
    pthread_setname_np(thread, name);
}

/* One line of truth for each line of questions. */
static int answer(void) {
    char line[16];
    printf("ready\n");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        if (refresh) refresh();
        unsigned long long until = now(CLOCK_MONOTONIC);
        for (int i = 0; i < COUNT; i++) printf("%llu ", truth[i] + (i == doing ? until - since : 0));
        printf("\n");
        fflush(stdout);
    }
    return 0;
}
#endif
