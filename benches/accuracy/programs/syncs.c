/* Writes and syncs a file, and computes (or, with a second argument, sleeps so many microseconds) between. Says at its
 * end where its time was, by the clocks of the thread and the run delay in its schedstat file: in fdatasync(2), and
 * between. The first argument: for how many seconds. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

struct clocks {
    double wall, cpu, delay;
};
static int schedstat;
static volatile unsigned long sink;

static double seconds(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}
static struct clocks now(void)
{
    char text[100] = "";
    unsigned long ran, waited = 0;
    if (pread(schedstat, text, sizeof text - 1, 0) < 0 || sscanf(text, "%lu %lu", &ran, &waited) != 2)
        exit(1);
    return (struct clocks){seconds(CLOCK_MONOTONIC), seconds(CLOCK_THREAD_CPUTIME_ID), (double)waited / 1e9};
}
static void add(struct clocks *to, struct clocks from, struct clocks until)
{
    to->wall += until.wall - from.wall;
    to->cpu += until.cpu - from.cpu;
    to->delay += until.delay - from.delay;
}
static void tell(const char *name, struct clocks all)
{
    fprintf(stderr, "%s %.2f s: blocked %.2f, waited for a CPU %.2f, ran %.2f\n", name, all.wall,
            all.wall - all.cpu - all.delay, all.delay, all.cpu);
}

int main(int count, char **arguments)
{
    static char block[8192];
    char name[] = "./syncs-XXXXXX";
    struct clocks syncs = {0}, between = {0}, before, after;
    int file = mkstemp(name);
    schedstat = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
    if (count < 2 || file < 0 || schedstat < 0 || unlink(name) != 0)
        return 1;
    double end = seconds(CLOCK_MONOTONIC) + atof(arguments[1]);
    for (long at = 0; seconds(CLOCK_MONOTONIC) < end; at = (at + 1) % 1000) {
        if (pwrite(file, block, sizeof block, at * (long)sizeof block) < 0)
            return 1;
        before = now();
        fdatasync(file);
        after = now();
        add(&syncs, before, after);
        if (count > 2)
            usleep((unsigned)atoi(arguments[2]));
        else
            for (int i = 0; i < 200000; i++)
                sink++;
        add(&between, after, now());
    }
    tell("fdatasync", syncs);
    tell("between", between);
    return 0;
}
