/* Work in step with a sampler of 100 Hz: of every 10 ms the first 3 go to one function, the others to another. */
#include "truth.h"

#define PERIOD 10000000ull
#define FIRST 3000000ull

__attribute__((noinline)) static void first(unsigned long long until) {
    while (now(CLOCK_MONOTONIC) < until) __asm__ volatile(""); /* not merged with the other */
}
__attribute__((noinline)) static void second(unsigned long long until) {
    while (now(CLOCK_MONOTONIC) < until) __asm__ volatile("nop");
}

static void *worker(void *argument) {
    unsigned long long before = now(CLOCK_THREAD_CPUTIME_ID), middle, after;
    (void)argument;
    for (;;) {
        unsigned long long period = now(CLOCK_MONOTONIC) / PERIOD * PERIOD;
        first(period + FIRST);
        middle = now(CLOCK_THREAD_CPUTIME_ID);
        second(period + PERIOD);
        after = now(CLOCK_THREAD_CPUTIME_ID);
        truth[0] += middle - before;
        truth[1] += after - middle;
        before = after;
    }
    return NULL;
}

int main(void) {
    start(worker, 0, "worker");
    return answer();
}
