/* A program worth profiling: threads that compute, threads that wait, threads that grow
 * arrays. It needs nothing of swipr to build or run:
 *
 *     LD_PRELOAD=libswipr.so build/mini_demo --burn-cpu --blocking --array-appends
 *
 * and, where libswipr can be found by the loader, it starts the profiler itself
 * (--sampling-server) or records itself into a file (--output). */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Functions that stay functions, so that a profile shows them. */
#define FUNCTION __attribute__((noinline))

enum { DEFAULT_ITERATIONS = 200 };

struct settings {
    int burn_cpu, blocking, array_appends, sampling_server;
    long threads, iterations;
    const char *output;
};

static struct settings settings = {.threads = 1, .iterations = DEFAULT_ITERATIONS};
static volatile double sink;

/* --- threads that compute ------------------------------------------------------- */

FUNCTION static double integrate(double (*curve)(double), long steps)
{
    double sum = 0, width = 1.0 / (double)steps;
    for (long i = 0; i < steps; i++)
        sum += curve(((double)i + 0.5) * width) * width;
    return sum;
}

FUNCTION static double circle_curve(double x)
{
    return 4.0 / (1.0 + x * x);
}

FUNCTION static uint64_t checksum(const unsigned char *bytes, size_t count, uint64_t hash)
{
    for (size_t i = 0; i < count; i++)
        hash = (hash ^ bytes[i]) * 1099511628211u;
    return hash;
}

FUNCTION static void burn_cpu_once(void)
{
    static const unsigned char text[] = "a text whose checksum nobody wants to know";
    uint64_t hash = 14695981039346656037u;
    double area = integrate(circle_curve, 1000000);
    for (int i = 0; i < 50000; i++)
        hash = checksum(text, sizeof text, hash);
    sink = area + (double)(hash & 1);
}

static void *burn_cpu(void *unused)
{
    (void)unused;
    for (long i = 0; i < settings.iterations; i++)
        burn_cpu_once();
    return NULL;
}

/* --- threads that wait ---------------------------------------------------------- */

FUNCTION static void wait_for_slow_answer(void)
{
    const struct timespec moment = {0, 20 * 1000 * 1000};
    nanosleep(&moment, NULL);
}

FUNCTION static void wait_for_lock_holder(pthread_mutex_t *mutex)
{
    pthread_mutex_lock(mutex);
    wait_for_slow_answer();
    pthread_mutex_unlock(mutex);
}

static void *blocking(void *unused)
{
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    (void)unused;
    for (long i = 0; i < settings.iterations; i++) {
        wait_for_lock_holder(&mutex);
        wait_for_slow_answer();
    }
    return NULL;
}

/* --- threads that grow arrays --------------------------------------------------- */

struct array {
    uint64_t *values;
    size_t count, room;
};

FUNCTION static void append(struct array *array, uint64_t value)
{
    if (array->count == array->room) {
        size_t room = array->room == 0 ? 16 : array->room * 2;
        uint64_t *grown = realloc(array->values, room * sizeof *grown);
        if (grown == NULL)
            abort();
        array->values = grown;
        array->room = room;
    }
    array->values[array->count++] = value;
}

FUNCTION static void fill_array(void)
{
    struct array array = {0};
    for (uint64_t i = 0; i < 1000000; i++)
        append(&array, i * i);
    sink = (double)array.values[array.count / 2];
    free(array.values);
}

static void *array_appends(void *unused)
{
    (void)unused;
    for (long i = 0; i < settings.iterations; i++)
        fill_array();
    return NULL;
}

/* --- the profiler, when asked for ----------------------------------------------- */

/* A function of libswipr: preloaded, linked, or found by the loader. */
static void *swipr_function(const char *name)
{
    static void *library;
    void *function = dlsym(RTLD_DEFAULT, name);
    if (function == NULL && library == NULL) {
#ifdef __APPLE__
        library = dlopen("libswipr.dylib", RTLD_NOW);
#else
        library = dlopen("libswipr.so", RTLD_NOW);
#endif
    }
    if (function == NULL && library != NULL)
        function = dlsym(library, name);
    if (function == NULL) {
        fprintf(stderr, "mini_demo: no %s: preload libswipr or name its folder in LD_LIBRARY_PATH\n",
                name);
        exit(1);
    }
    return function;
}

static void check(const char *what, int32_t status)
{
    size_t (*last_error)(char *, size_t);
    char text[512] = "";
    if (status == 0)
        return;
    *(void **)&last_error = swipr_function("swipr_last_error");
    last_error(text, sizeof text);
    fprintf(stderr, "mini_demo: %s: %s\n", what, text);
    exit(1);
}

static void start_server(void)
{
    int32_t (*start)(const void *);
    size_t (*socket_path)(char *, size_t);
    char path[512] = "";
    *(void **)&start = swipr_function("swipr_start");
    *(void **)&socket_path = swipr_function("swipr_socket_path");
    /* Preloaded, it may be running already. */
    if (socket_path(path, sizeof path) == 0) {
        check("cannot start the server", start(NULL));
        socket_path(path, sizeof path);
    }
    if (settings.sampling_server)
        printf("curl --unix-socket %s 'http://localhost/profile?seconds=5&format=folded'\n", path);
    fflush(stdout);
}

static uint64_t begin_recording(void)
{
    int32_t (*begin)(const char *, const char *, uint64_t, uint64_t *);
    uint64_t recording = 0;
    start_server();
    *(void **)&begin = swipr_function("swipr_recording_begin");
    check("cannot record", begin(settings.output, "perf", 10000, &recording));
    return recording;
}

static void end_recording(uint64_t recording)
{
    int32_t (*end)(uint64_t);
    *(void **)&end = swipr_function("swipr_recording_end");
    check("cannot finish the recording", end(recording));
    printf("%s\n", settings.output);
}

/* --- the command line ----------------------------------------------------------- */

static void usage(FILE *to)
{
    fprintf(to,
            "usage: mini_demo [options]\n"
            "  --burn-cpu          threads that compute\n"
            "  --blocking          threads that sleep and wait for a lock\n"
            "  --array-appends     threads that grow arrays\n"
            "                      (none of the three: all)\n"
            "  --threads N         threads of each kind (1)\n"
            "  --iterations N      how much each thread does (%d)\n"
            "  --sampling-server   start swipr's server\n"
            "  --output FILE       record the run, as perf script text\n",
            DEFAULT_ITERATIONS);
}

static long number(const char *option, const char *text)
{
    char *end = NULL;
    long value = text == NULL ? 0 : strtol(text, &end, 10);
    if (value < 1 || end == NULL || *end != 0) {
        fprintf(stderr, "mini_demo: %s needs a number from 1\n", option);
        exit(2);
    }
    return value;
}

static void read_arguments(int count, char **arguments)
{
    for (int i = 1; i < count; i++) {
        const char *option = arguments[i];
        if (strcmp(option, "--burn-cpu") == 0) {
            settings.burn_cpu = 1;
        } else if (strcmp(option, "--blocking") == 0) {
            settings.blocking = 1;
        } else if (strcmp(option, "--array-appends") == 0) {
            settings.array_appends = 1;
        } else if (strcmp(option, "--sampling-server") == 0) {
            settings.sampling_server = 1;
        } else if (strcmp(option, "--threads") == 0) {
            settings.threads = number(option, arguments[i + 1]);
            i++;
        } else if (strcmp(option, "--iterations") == 0) {
            settings.iterations = number(option, arguments[i + 1]);
            i++;
        } else if (strcmp(option, "--output") == 0 && i + 1 < count) {
            settings.output = arguments[++i];
        } else if (strcmp(option, "--help") == 0) {
            usage(stdout);
            exit(0);
        } else {
            fprintf(stderr, "mini_demo: cannot understand %s\n", option);
            usage(stderr);
            exit(2);
        }
    }
    if (!settings.burn_cpu && !settings.blocking && !settings.array_appends)
        settings.burn_cpu = settings.blocking = settings.array_appends = 1;
}

static pthread_t start_thread(const char *name, void *(*body)(void *))
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, body, NULL) != 0) {
        fprintf(stderr, "mini_demo: cannot create a thread\n");
        exit(1);
    }
#ifdef __APPLE__
    (void)name;
#else
    pthread_setname_np(thread, name);
#endif
    return thread;
}

int main(int count, char **arguments)
{
    uint64_t recording = 0;
    long started = 0;
    read_arguments(count, arguments);
    pthread_t *threads = calloc((size_t)settings.threads * 3, sizeof *threads);
    if (threads == NULL)
        return 1;
    if (settings.sampling_server)
        start_server();
    if (settings.output != NULL)
        recording = begin_recording();

    for (long i = 0; i < settings.threads; i++) {
        if (settings.burn_cpu)
            threads[started++] = start_thread("burn-cpu", burn_cpu);
        if (settings.blocking)
            threads[started++] = start_thread("blocking", blocking);
        if (settings.array_appends)
            threads[started++] = start_thread("array-appends", array_appends);
    }
    for (long i = 0; i < started; i++)
        pthread_join(threads[i], NULL);

    if (settings.output != NULL)
        end_recording(recording);
    free(threads);
    return 0;
}
