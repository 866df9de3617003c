/* Built without frame pointers, with the stack shapes that unwinders find hard: alloca and
   arrays of variable length, realigned stacks, callbacks out of libc, tail calls, leaf
   functions, deep recursion, a signal handler that works for a while, an alternate stack.
   Runs until it is ended. */
#define _GNU_SOURCE
#include <alloca.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

static volatile unsigned long sink;

__attribute__((noinline)) static unsigned long leaf(unsigned long seed) {
    for (int i = 0; i < 2000; i++) seed = seed * 6364136223846793005ul + 1442695040888963407ul;
    return seed;
}

__attribute__((noinline)) static unsigned long with_alloca(unsigned long n) {
    char *room = alloca(64 + n % 4096);
    memset(room, (int)n, 64 + n % 4096);
    return leaf((unsigned char)room[n % 64]) + (unsigned long)room[1];
}

__attribute__((noinline)) static unsigned long realigned(unsigned long n) {
    _Alignas(64) volatile unsigned char room[256];
    for (int i = 0; i < 256; i++) room[i] = (unsigned char)(n + i);
    return with_alloca(room[n % 256]) + room[3];
}

__attribute__((noinline)) static unsigned long recursion(unsigned depth, unsigned long n) {
    if (depth == 0) return realigned(n);
    return recursion(depth - 1, n + depth) + 1;
}

static int compare(const void *left, const void *right) {
    unsigned long a = *(const unsigned long *)left, b = *(const unsigned long *)right;
    return leaf(a % 7) % 3 == 5 ? 0 : (a > b) - (a < b);
}

__attribute__((noinline)) static unsigned long sorted(unsigned long n) {
    unsigned long values[64];
    for (int i = 0; i < 64; i++) values[i] = (n = leaf(n));
    qsort(values, 64, sizeof *values, compare);
    return values[n % 64];
}

static void on_alarm(int number) { sink += recursion(3, (unsigned long)number); }

static void *works(void *argument) {
    stack_t other = {.ss_sp = malloc(65536), .ss_size = 65536};
    sigaltstack(&other, NULL);
    for (unsigned long n = (unsigned long)argument;; n++) sink += recursion(n % 60, n) + sorted(n);
}

static void *sleeps(void *argument) {
    for (;;) usleep(1000 + (unsigned)(unsigned long)argument);
}

int main(void) {
    struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART | SA_ONSTACK};
    sigaction(SIGALRM, &action, NULL);
    struct itimerval timer = {{0, 2000}, {0, 2000}};
    setitimer(ITIMER_REAL, &timer, NULL);
    for (unsigned long i = 0; i < 2; i++) {
        pthread_t thread;
        pthread_create(&thread, NULL, works, (void *)i);
        pthread_create(&thread, NULL, sleeps, (void *)i);
    }
    works((void *)9);
}
