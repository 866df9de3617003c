/* Threads that compute in short bursts between sleeps, from 1 % of the time to all of it. The truth is
   each thread's CPU clock. */
#include "truth.h"

static const unsigned duties[COUNT] = {1, 2, 3, 5, 7, 10, 15, 20, 30, 100};
static clockid_t clocks[COUNT];

__attribute__((noinline)) static void burst(unsigned microseconds) {
    unsigned long long start = now(CLOCK_THREAD_CPUTIME_ID);
    while (now(CLOCK_THREAD_CPUTIME_ID) - start < microseconds * 1000ull) {}
}

static void *worker(void *argument) {
    unsigned long number = (unsigned long)argument;
    pthread_getcpuclockid(pthread_self(), &clocks[number]);
    for (unsigned turn = 0;; turn++) {
        unsigned length = 100 + (turn * 7919 + (unsigned)number * 31) % 400; /* 0.1 to 0.5 ms */
        burst(length);
        if (duties[number] < 100) usleep(length * (100 - duties[number]) / duties[number]);
    }
    return NULL;
}

static void *reader(void *argument) {
    (void)argument;
    for (;;) {
        for (int i = 0; i < COUNT; i++)
            if (clocks[i]) truth[i] = now(clocks[i]);
        usleep(500);
    }
    return NULL;
}

int main(void) {
    char name[16];
    for (unsigned long i = 0; i < COUNT; i++) {
        snprintf(name, sizeof name, "duty-%lu", i);
        start(worker, i, name);
    }
    start(reader, 0, "reader");
    return answer();
}
