/* A profiler of per-thread CPU timers, to be preloaded and compared with: timer_create(2) on the CPU clock of every
   thread there is when SIGUSR2 switches it on, SIGEV_THREAD_ID, SIGPROF. Switched off, it writes a line for each
   sample to $TIMERS_OUTPUT, `thread weight_ns address...`, innermost first, addresses as in the program's file.

   TIMERS_HZ             samples a second of CPU time
   TIMERS_SET_AGAIN=0    the timer repeats; a sample weighs a period for each expiration, 1 + si_overrun
   TIMERS_SET_AGAIN=1    the handler sets it again, to a random time of one period in the mean; a sample weighs the
                         thread's CPU time since its sample before

   Not a product: threads that begin later are not seen, and glibc's backtrace() takes the stacks. */
#define _GNU_SOURCE
#include <dirent.h>
#include <execinfo.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define THREADS 256
#define SAMPLES (1 << 18)
#define FRAMES 24
/* The handler's own frame and the kernel's. */
#define OWN_FRAMES 2

struct thread {
    timer_t timer;
    int tid;
    char name[32];
    unsigned long long before, random;
};
struct sample {
    int thread, count;
    unsigned long long weight;
    void *frames[FRAMES];
};

static struct thread threads[THREADS];
static struct sample *samples;
static atomic_int used, on;
static int thread_count, set_again;
static long period;

static unsigned long long cpu_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (unsigned long long)time.tv_sec * 1000000000ull + (unsigned long long)time.tv_nsec;
}

static struct itimerspec after(long ns, long interval) {
    return (struct itimerspec){.it_value = {ns / 1000000000, ns % 1000000000},
                               .it_interval = {interval / 1000000000, interval % 1000000000}};
}

/* Uniform in 1 ns to two periods. */
static long random_time(struct thread *thread) {
    unsigned long long x = thread->random;
    x ^= x << 13, x ^= x >> 7, x ^= x << 17;
    thread->random = x;
    return 1 + (long)(x % (2 * (unsigned long)period));
}

static void handler(int signal, siginfo_t *info, void *context) {
    (void)signal, (void)context;
    if (info->si_code != SI_TIMER || !on) return;
    struct thread *thread = info->si_value.sival_ptr;
    int number = atomic_fetch_add(&used, 1);
    if (number < SAMPLES) {
        struct sample *sample = &samples[number];
        unsigned long long now = cpu_ns();
        sample->weight = set_again ? now - thread->before : (unsigned long long)period * (1 + (unsigned)info->si_overrun);
        sample->thread = (int)(thread - threads);
        sample->count = backtrace(sample->frames, FRAMES);
        thread->before = now;
    }
    if (set_again) {
        struct itimerspec next = after(random_time(thread), 0);
        timer_settime(thread->timer, 0, &next, NULL);
    }
}

static void switch_on(int own) {
    DIR *tasks = opendir("/proc/self/task");
    struct dirent *entry;
    thread_count = 0;
    atomic_store(&used, 0);
    atomic_store(&on, 1);
    while (tasks && (entry = readdir(tasks)) && thread_count < THREADS) {
        struct thread *thread = &threads[thread_count];
        char path[64];
        thread->tid = atoi(entry->d_name);
        if (!thread->tid || thread->tid == own) continue;
        snprintf(path, sizeof path, "/proc/self/task/%d/comm", thread->tid);
        FILE *file = fopen(path, "r");
        if (!file || !fgets(thread->name, sizeof thread->name, file)) strcpy(thread->name, "?");
        if (file) fclose(file);
        thread->name[strcspn(thread->name, "\n")] = 0;
        thread->random = 88172645463325252ull * (unsigned long long)(thread->tid + 1);
        struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGPROF};
        event.sigev_value.sival_ptr = thread;
        event._sigev_un._tid = thread->tid;
        /* The kernel's encoding of a thread's CPU clock: CPUCLOCK_PERTHREAD | CPUCLOCK_SCHED. */
        clockid_t clock = (clockid_t)(~(unsigned)thread->tid << 3 | 6);
        struct timespec now;
        if (clock_gettime(clock, &now) || timer_create(clock, &event, &thread->timer)) continue;
        thread->before = (unsigned long long)now.tv_sec * 1000000000ull + (unsigned long long)now.tv_nsec;
        struct itimerspec first = set_again ? after(random_time(thread), 0) : after(period, period);
        timer_settime(thread->timer, 0, &first, NULL);
        thread_count++;
    }
    if (tasks) closedir(tasks);
}

/* The first object is the program; what is added to addresses in its file. */
static int find_program(struct dl_phdr_info *object, size_t size, void *bias) {
    (void)size;
    *(unsigned long *)bias = object->dlpi_addr;
    return 1;
}

static void switch_off(const char *output) {
    atomic_store(&on, 0);
    for (int i = 0; i < thread_count; i++) timer_delete(threads[i].timer);
    usleep(10000); /* until late handlers are gone */
    FILE *file = output ? fopen(output, "w") : NULL;
    unsigned long program = 0;
    dl_iterate_phdr(find_program, &program);
    if (!file) return;
    int count = used < SAMPLES ? used : SAMPLES;
    for (int i = 0; i < count; i++) {
        fprintf(file, "%s %llu", threads[samples[i].thread].name, samples[i].weight);
        for (int j = OWN_FRAMES; j < samples[i].count; j++)
            fprintf(file, " %#lx", (unsigned long)samples[i].frames[j] - program);
        fprintf(file, "\n");
    }
    fprintf(file, "end %d\n", count);
    fclose(file);
}

static void *serve(void *switches) {
    int own = (int)syscall(SYS_gettid), signal;
    for (;;) {
        sigwait(switches, &signal);
        if (on) switch_off(getenv("TIMERS_OUTPUT"));
        else switch_on(own);
    }
    return NULL;
}

__attribute__((constructor)) static void load(void) {
    static sigset_t switches;
    const char *hz = getenv("TIMERS_HZ"), *again = getenv("TIMERS_SET_AGAIN");
    void *warm[4];
    pthread_t thread;
    if (!hz || atoi(hz) <= 0) return;
    period = 1000000000l / atoi(hz);
    set_again = again && atoi(again);
    samples = calloc(SAMPLES, sizeof *samples);
    backtrace(warm, 4); /* loads libgcc */
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_RESTART};
    sigfillset(&action.sa_mask);
    sigaction(SIGPROF, &action, NULL);
    /* Blocked in every thread: one waits for it. */
    sigemptyset(&switches);
    sigaddset(&switches, SIGUSR2);
    pthread_sigmask(SIG_BLOCK, &switches, NULL);
    if (samples && !pthread_create(&thread, NULL, serve, &switches)) pthread_detach(thread);
}
