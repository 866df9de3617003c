/* What the programs here share: how they talk to their runner.
 *
 * A program says `ready` when its threads are where they should be, lives until its
 * standard input is closed, and then says `ok`, or what went wrong. Nothing in here
 * knows of swipr: the programs behave the same without it. */
#ifndef SWIPR_C_TESTS_HOST_H
#define SWIPR_C_TESTS_HOST_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

/* A function that keeps its own frame and its own name. */
#define FRAME __attribute__((noinline, used))
/* Behind a call: it is then not the last thing done, so it cannot become a jump. */
#define NOT_A_TAIL_CALL() __asm__ volatile("" ::: "memory")
#define UNUSED __attribute__((unused))

/* Set when the runner wants the program to end. */
static atomic_bool host_ending;
/* Threads that are about to do what they are here for. */
static atomic_int host_arrived;

/* Bounds the program's life whatever goes wrong. Call it first. */
UNUSED static void host_begin(void)
{
    alarm(60);
}

/* A line for the runner. */
UNUSED static void host_say(const char *format, ...)
{
    char line[512];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(line, sizeof line - 1, format, arguments);
    va_end(arguments);
    if (length < 0)
        return;
    if ((size_t)length > sizeof line - 2)
        length = sizeof line - 2;
    line[length++] = '\n';
    for (int done = 0; done < length;) {
        ssize_t written = write(STDOUT_FILENO, line + done, (size_t)(length - done));
        if (written <= 0)
            return;
        done += (int)written;
    }
}

/* Ends the program at once, with the reason. */
#define HOST_CHECK(condition)                                                      \
    do {                                                                           \
        if (!(condition)) {                                                        \
            host_say("failed: %s:%d: %s (errno %d)", __FILE__, __LINE__,           \
                     #condition, errno);                                           \
            _exit(1);                                                              \
        }                                                                          \
    } while (0)

/* The CPU time of the calling thread. */
UNUSED static uint64_t host_thread_cpu_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* The next line from the runner, without its end; false when there is none any more. */
UNUSED static bool host_line(char *line, size_t capacity)
{
    size_t length = 0;
    char byte;
    for (;;) {
        ssize_t got = read(STDIN_FILENO, &byte, 1);
        if (got <= 0)
            return false;
        if (byte == '\n')
            break;
        if (length + 1 < capacity)
            line[length++] = byte;
    }
    line[length] = 0;
    return true;
}

/* Waits, in read, until the runner wants the program to end. */
FRAME UNUSED static void host_wait_for_end(void)
{
    char line[64];
    while (host_line(line, sizeof line))
        NOT_A_TAIL_CALL();
    atomic_store(&host_ending, true);
}

/* What a thread calls right before the call it is to be found in. */
UNUSED static void host_arrive(void)
{
    atomic_fetch_add(&host_arrived, 1);
}

/* Threads of this process. */
UNUSED static int host_threads(void)
{
    DIR *directory = opendir("/proc/self/task");
    HOST_CHECK(directory != NULL);
    int count = 0;
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;)
        count += entry->d_name[0] != '.';
    closedir(directory);
    return count;
}

UNUSED static pthread_t host_thread(const char *name, void *(*body)(void *), void *argument)
{
    pthread_t thread;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 1024 * 1024);
    int error = pthread_create(&thread, &attributes, body, argument);
    errno = error;
    HOST_CHECK(error == 0);
    pthread_attr_destroy(&attributes);
    pthread_setname_np(thread, name);
    return thread;
}

/* The state letter of a thread, as the kernel tells it; 0 when it is gone. */
UNUSED static char host_thread_state(const char *tid)
{
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/self/task/%.20s/stat", tid);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return 0;
    size_t length = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[length] = 0;
    const char *end_of_name = strrchr(text, ')');
    return end_of_name != NULL && end_of_name[1] == ' ' ? end_of_name[2] : 0;
}

/* Waits until `threads` threads have arrived and every thread but this one sleeps. */
UNUSED static void host_wait_until_blocked(int threads)
{
    const struct timespec pause = {0, 1000000};
    for (;;) {
        bool all = atomic_load(&host_arrived) >= threads;
        long self = syscall(SYS_gettid);
        DIR *tasks = all ? opendir("/proc/self/task") : NULL;
        if (tasks != NULL) {
            struct dirent *task;
            while ((task = readdir(tasks)) != NULL) {
                if (task->d_name[0] == '.' || atol(task->d_name) == self)
                    continue;
                if (host_thread_state(task->d_name) != 'S')
                    all = false;
            }
            closedir(tasks);
        }
        if (all)
            return;
        nanosleep(&pause, NULL);
    }
}

/* Waits until `threads` threads have arrived. */
UNUSED static void host_wait_until_arrived(int threads)
{
    const struct timespec pause = {0, 1000000};
    while (atomic_load(&host_arrived) < threads)
        nanosleep(&pause, NULL);
}

/* The program's last word. */
UNUSED static int host_end(void)
{
    host_say("ok");
    return 0;
}

#endif
