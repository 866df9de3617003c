/* A program that notices what is done to it: threads that compute and compare, and threads in
   every call that a signal can interrupt. Runs until the end of stdin, then prints what it
   noticed: nothing, if all is well. */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <time.h>
#include <unistd.h>

static int over, interrupted, spoilt, wrong;
static unsigned long turns[4];
static pthread_barrier_t all_there;

static int goes_on(void) { return !__atomic_load_n(&over, __ATOMIC_RELAXED); }
static void note(int *counter) { __atomic_add_fetch(counter, 1, __ATOMIC_RELAXED); }

__attribute__((noinline)) static unsigned long compute(void) {
    unsigned char data[4096];
    unsigned long sum = 7;
    for (int i = 0; i < 4096; i++) data[i] = (unsigned char)(i * 31 + i / 7);
    for (int turn = 0; turn < 20; turn++)
        for (int i = 0; i < 4096; i++) sum = (sum ^ data[i]) * 1099511628211ul;
    return sum;
}

static void *computes(void *argument) {
    unsigned long number = (unsigned long)argument, expected = compute();
    pthread_barrier_wait(&all_there);
    while (goes_on()) {
        errno = 4711;
        if (compute() != expected) note(&wrong);
        if (errno != 4711) note(&spoilt);
        __atomic_add_fetch(&turns[number], 1, __ATOMIC_RELAXED);
    }
    return NULL;
}

static void *waits(void *argument) {
    (void)argument;
    int events = epoll_create1(0), pipes[2];
    sem_t semaphore;
    struct timespec pause = {0, 1500000};
    if (events < 0 || pipe(pipes) || sem_init(&semaphore, 0, 0)) return NULL;
    pthread_barrier_wait(&all_there);
    while (goes_on()) {
        struct epoll_event found[2];
        struct pollfd one = {pipes[0], POLLIN, 0};
        struct timeval time = {0, 1500};
        struct timespec until;
        fd_set set;
        FD_ZERO(&set);
        FD_SET(pipes[0], &set);
        if (epoll_wait(events, found, 2, 2) < 0) note(&interrupted);
        if (poll(&one, 1, 2) < 0) note(&interrupted);
        if (select(pipes[0] + 1, &set, NULL, NULL, &time) < 0) note(&interrupted);
        if (nanosleep(&pause, NULL)) note(&interrupted);
        if (usleep(1500)) note(&interrupted);
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += 1500000;
        if (until.tv_nsec >= 1000000000) until.tv_sec++, until.tv_nsec -= 1000000000;
        if (sem_timedwait(&semaphore, &until) && errno != ETIMEDOUT) note(&interrupted);
        __atomic_add_fetch(&turns[2], 1, __ATOMIC_RELAXED);
    }
    close(events), close(pipes[0]), close(pipes[1]);
    return NULL;
}

int main(void) {
    pthread_t ids[6];
    char line[64];
    if (pthread_barrier_init(&all_there, NULL, 7)) return 2;
    for (unsigned long i = 0; i < 6; i++)
        if (pthread_create(&ids[i], NULL, i < 2 ? computes : waits, (void *)i)) return 2;
    pthread_barrier_wait(&all_there);
    printf("ready\n");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {}
    for (int i = 0; i < 3; i++) /* so much work is done even if nobody asks for any */
        while (__atomic_load_n(&turns[i], __ATOMIC_RELAXED) < 10) sched_yield();
    __atomic_store_n(&over, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < 6; i++) pthread_join(ids[i], NULL);
    fprintf(stderr, "%lu calls\n", turns[2] * 6);
    printf("wrong=%d spoilt=%d interrupted=%d\n", wrong, spoilt, interrupted);
    return 0;
}
