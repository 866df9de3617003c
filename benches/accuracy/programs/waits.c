/* Threads that compute and sleep, more than there are CPUs. Says at its end how long they were in `work` and in
 * `rest`, by the clock on the wall, and how much of it they waited for a CPU: in `work`, where nothing blocks, that is
 * what the CPU clock has not; the rest of the run delay in their schedstat files is behind sleeps.
 * Arguments: seconds, threads, microseconds of work, one sleep for so many of these, and its length in microseconds. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 64 };
static struct { double work, cpu, rest, delay; } times[MOST];
static long steps, sleeps_of, rest_us;
static volatile int stop;

static double seconds(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}
static double run_delay(void)
{
    char text[100] = "";
    unsigned long ran, waited = 0;
    int file = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
    if (pread(file, text, sizeof text - 1, 0) < 0 || sscanf(text, "%lu %lu", &ran, &waited) != 2)
        exit(1);
    close(file);
    return (double)waited / 1e9;
}
__attribute__((noinline)) static void work(long count)
{
    for (long i = 0; i < count; i++)
        __asm__ volatile("");
    __asm__ volatile(""); /* no tail call */
}
__attribute__((noinline)) static void rest(long us)
{
    nanosleep(&(struct timespec){us / 1000000, us % 1000000 * 1000}, NULL);
    __asm__ volatile("");
}
static void *turns(void *number)
{
    long at = (long)number;
    unsigned seed = (unsigned)at + 1;
    double delay = run_delay(), begun = seconds(CLOCK_MONOTONIC);
    while (!stop) {
        work(steps / 2 + rand_r(&seed) % steps);
        double worked = seconds(CLOCK_MONOTONIC);
        times[at].work += worked - begun;
        begun = worked;
        if (rand_r(&seed) % sleeps_of == 0) {
            rest(rest_us);
            begun = seconds(CLOCK_MONOTONIC);
            times[at].rest += begun - worked;
        }
    }
    times[at].cpu = seconds(CLOCK_THREAD_CPUTIME_ID);
    times[at].delay = run_delay() - delay;
    return NULL;
}

int main(int count, char **arguments)
{
    pthread_t threads[MOST];
    long number = count == 6 ? atol(arguments[2]) : 0;
    if (number < 1 || number > MOST || (sleeps_of = atol(arguments[4])) < 1)
        return 1;
    double begun = seconds(CLOCK_THREAD_CPUTIME_ID);
    work(50000000);
    steps = (long)(50000000 / (seconds(CLOCK_THREAD_CPUTIME_ID) - begun) * atof(arguments[3]) / 1e6);
    rest_us = atol(arguments[5]);
    for (long i = 0; i < number; i++)
        pthread_create(&threads[i], NULL, turns, (void *)i);
    sleep((unsigned)atoi(arguments[1]));
    stop = 1;
    double work_s = 0, rest_s = 0, in_work = 0, delay = 0;
    for (long i = 0; i < number; i++) {
        pthread_join(threads[i], NULL);
        work_s += times[i].work;
        rest_s += times[i].rest;
        in_work += times[i].work - times[i].cpu;
        delay += times[i].delay;
    }
    fprintf(stderr, "work %.2f s, %.2f of them waited for a CPU; rest %.2f s, %.2f of them\n", work_s, in_work, rest_s,
            delay - in_work);
    return 0;
}
