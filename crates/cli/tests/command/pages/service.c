/* A service to be profiled: one thread computes in parse() for a part of the time, others wait. Arguments are not
 * looked at.
 * Runs for a second and a half; in the background, where a shell makes /dev/null its input, for a minute; and where its
 * input is a pipe until that is closed. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

static volatile unsigned long sink;

__attribute__((noinline)) static void parse(void)
{
    for (unsigned long i = 0; i < 1000000; i++)
        sink += i;
}

static void *worker(void *name)
{
    pthread_setname_np(pthread_self(), name);
    const struct timespec pause = {0, 8000000};
    for (;;) {
        /* Longer than a tick of the kernel: no stretch of it falls between two ticks. */
        for (int i = 0; i < 8; i++)
            parse();
        nanosleep(&pause, NULL);
    }
    return NULL;
}

int main(void)
{
    struct stat input;
    pthread_t thread;
    int is_known = fstat(0, &input) == 0;
    int is_background = is_known && input.st_rdev == makedev(1, 3);
    struct timespec time = {is_background ? 60 : 1, 500000000};
    char byte;
    pthread_create(&thread, NULL, worker, "worker-1");
    puts("ready");
    fflush(stdout);
    if (is_known && S_ISFIFO(input.st_mode))
        while (read(0, &byte, 1) > 0)
            ;
    else
        nanosleep(&time, NULL);
    return 0;
}
