/* A thread that waits for four causes in turn, and knows how long for each. */
#include "truth.h"
#include <sys/epoll.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int to_reader[2], to_feeder[2], to_locker[2];

/* Behind a call, so that it does not become a jump. */
#define STAY() __asm__ volatile("" ::: "memory")

__attribute__((noinline)) static void wait_lock(void) {
    char byte = 0;
    if (write(to_locker[1], &byte, 1) != 1) exit(2);
    usleep(300); /* until the other has it */
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&lock);
    STAY();
}
__attribute__((noinline)) static void wait_sleep(void) {
    usleep(23000);
    STAY();
}
__attribute__((noinline)) static void wait_read(void) {
    char byte = 0;
    if (write(to_feeder[1], &byte, 1) != 1 || read(to_reader[0], &byte, 1) != 1) exit(2);
    STAY();
}
__attribute__((noinline)) static void wait_epoll(int events) {
    struct epoll_event event;
    epoll_wait(events, &event, 1, 41);
    STAY();
}

static void *feeder(void *argument) {
    char byte;
    (void)argument;
    while (read(to_feeder[0], &byte, 1) == 1) {
        usleep(13000);
        if (write(to_reader[1], &byte, 1) != 1) exit(2);
    }
    return NULL;
}
static void *locker(void *argument) {
    char byte;
    (void)argument;
    while (read(to_locker[0], &byte, 1) == 1) {
        pthread_mutex_lock(&lock);
        usleep(17000);
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

static void *waiter(void *argument) {
    int events = epoll_create1(0);
    (void)argument;
    for (unsigned turn = 0;; turn++) {
        since = now(CLOCK_MONOTONIC);
        doing = (int)(turn % 4);
        switch (turn % 4) {
        case 0: wait_lock(); break;
        case 1: wait_sleep(); break;
        case 2: wait_read(); break;
        default: wait_epoll(events);
        }
        unsigned long long taken = now(CLOCK_MONOTONIC) - since;
        doing = COUNT;
        truth[turn % 4] += taken;
    }
    return NULL;
}

int main(void) {
    if (pipe(to_reader) || pipe(to_feeder) || pipe(to_locker)) return 2;
    start(feeder, 0, "feeder");
    start(locker, 0, "locker");
    start(waiter, 0, "waiter");
    return answer();
}
