/* Ten functions of the same instructions, called at random in known shares by two threads. */
#include "truth.h"

#define WORK(number)                                                                              \
    __attribute__((noinline, aligned(64))) static void work_##number(void) {                     \
        unsigned long long value = number;                                                        \
        for (int i = 0; i < 4096; i++) value = value * 6364136223846793005ull + 1442695040888963407ull; \
        __asm__ volatile("" ::"r"(value));                                                        \
    }
WORK(0) WORK(1) WORK(2) WORK(3) WORK(4) WORK(5) WORK(6) WORK(7) WORK(8) WORK(9)

static void (*const works[COUNT])(void) = {work_0, work_1, work_2, work_3, work_4,
                                           work_5, work_6, work_7, work_8, work_9};
static const unsigned weights[COUNT] = {1, 2, 3, 5, 8, 13, 21, 34, 55, 89};

static void *worker(void *argument) {
    unsigned long long state = 88172645463325252ull * (1 + (unsigned long)argument);
    for (;;) {
        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        unsigned at = (unsigned)((state >> 20) % 231), chosen = 0;
        while (at >= weights[chosen]) at -= weights[chosen++];
        works[chosen]();
        __atomic_fetch_add(&truth[chosen], 1, __ATOMIC_RELAXED);
    }
    return NULL;
}

int main(void) {
    start(worker, 0, "worker");
    start(worker, 1, "worker");
    return answer();
}
