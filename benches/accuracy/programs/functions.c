/* Threads whose CPU time is known by function: parse, render, and the rest (a system call, a sleep,
   the loop). The argument names a mode, or a group of six threads: "mixed" or "crowd". The truth of
   a thread is four slots: parse, render, the rest, and its CPU clock. */
#define THREADS 6
#define SLOTS 4
#define COUNT (THREADS * SLOTS)
#include "truth.h"
#include <string.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>

enum part { PARSE, RENDER, REST, TOTAL };

/* How a turn ends: with a cheap call, a sleep, the next expiration of a periodic timer, the end of its own thread, or a
   sleep of half to one and a half times as long in one of a pool's threads. DEADLINE: it has no pause, and both functions
   end at a time, after half to one and a half times as long. */
enum pause { CALL, SLEEP, TIMER, EXIT, POOL, DEADLINE };
enum { POOL_THREADS = 100 };

struct mode {
    const char *name;
    unsigned parse_us, render_us;
    enum pause pause;
    unsigned pause_us;
};

/* Bursts are 3/4 parse, except for the one that begins with its smaller part. */
static const struct mode modes[] = {
    {"call-20us", 20, 0, CALL, 0},
    {"call-50us", 50, 0, CALL, 0},
    {"call-100us", 100, 0, CALL, 0},
    {"call-1ms", 1000, 0, CALL, 0},
    {"burst-50us", 38, 12, SLEEP, 500},
    {"burst-300us", 225, 75, SLEEP, 3000},
    {"burst-1ms", 750, 250, SLEEP, 9000},
    {"burst-3ms", 2250, 750, SLEEP, 7000},
    {"burst-20ms", 4000, 16000, SLEEP, 80000},
    {"timer-10ms-0.5ms", 375, 125, TIMER, 10000},
    {"timer-10ms-2ms", 1500, 500, TIMER, 10000},
    {"timer-10ms-3ms", 2250, 750, TIMER, 10000},
    {"timer-20ms-0.5ms", 375, 125, TIMER, 20000},
    {"timer-20ms-2ms", 1500, 500, TIMER, 20000},
    {"timer-20ms-3ms", 2250, 750, TIMER, 20000},
    {"thread-2ms", 500, 1500, EXIT, 0},
    {"thread-6ms", 3000, 3000, EXIT, 0},
    {"thread-20ms", 15000, 5000, EXIT, 0},
    {"pool-5ms", 2500, 2500, POOL, 2000000},
    {"deadline-4ms", 3000, 1000, DEADLINE, 0},
};

static const char *const groups[][1 + THREADS] = {
    {"mixed", "call-20us", "burst-50us", "burst-300us", "burst-1ms", "burst-3ms", "burst-20ms"},
    {"crowd", "call-100us", "call-100us", "call-100us", "call-100us", "call-100us", "call-100us"},
    {"deadlines", "deadline-4ms", "deadline-4ms"},
};
enum { GROUPS = sizeof groups / sizeof *groups };

static const struct mode *chosen[THREADS];
static clockid_t clocks[THREADS];
static volatile unsigned long long calls[THREADS];

/* Measured at the start: rounds of work in a microsecond, a call and a look at the clock in ns. */
static double rounds_per_us, call_ns;
static unsigned long long look_ns;

/* The same instructions in both. */
#define WORK(name, seed)                                                                          \
    __attribute__((noinline, noclone, aligned(64))) static void name(unsigned long rounds) {     \
        unsigned long long value = seed;                                                          \
        while (rounds--) value = value * 6364136223846793005ull + 1442695040888963407ull;         \
        __asm__ volatile("" ::"r"(value));                                                        \
    }
WORK(parse, 1)
WORK(render, 2)

static unsigned long long cpu(void) { return now(CLOCK_THREAD_CPUTIME_ID); }

static void measure(void) {
    enum { TIMES = 100000 };
    for (int i = 0; i < 10; i++) {
        unsigned long long start = cpu();
        parse(1000000);
        double rate = 1e9 / (double)(cpu() - start);
        if (rate > rounds_per_us) rounds_per_us = rate;
    }
    unsigned long long start = cpu();
    for (int i = 0; i < TIMES; i++) syscall(SYS_getppid);
    call_ns = (double)(cpu() - start) / TIMES;
    start = cpu();
    for (int i = 0; i < TIMES; i++) cpu();
    look_ns = (cpu() - start) / TIMES;
}

/* Looks at the clock would be calls, too: here the calls are counted. */
static void steady(unsigned long number, unsigned long rounds) {
    for (;;) {
        parse(rounds);
        syscall(SYS_getppid);
        calls[number]++;
    }
}

/* One turn, in a thread that ends with it. Its clock begins with it. */
static void *turn(void *argument) {
    unsigned long number = (unsigned long)argument;
    const struct mode *mode = chosen[number];
    volatile unsigned long long *known = truth + SLOTS * number;
    parse((unsigned long)(mode->parse_us * rounds_per_us));
    unsigned long long middle = cpu();
    render((unsigned long)(mode->render_us * rounds_per_us));
    unsigned long long end = cpu();
    known[PARSE] += middle;
    known[RENDER] += end - middle;
    return NULL;
}

static void turns(unsigned long number) {
    for (;;) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, turn, (void *)number)) exit(2);
        pthread_join(thread, NULL);
    }
}

static void add(unsigned long number, enum part part, unsigned long long ns) {
    __atomic_fetch_add(&truth[SLOTS * number + part], ns, __ATOMIC_RELAXED);
}

/* One thread of a pool. */
static void *pooled(void *argument) {
    unsigned long number = (unsigned long)argument;
    const struct mode *mode = chosen[number];
    unsigned seed = (unsigned)now(CLOCK_MONOTONIC);
    for (unsigned long long start = 0, middle, end, next;; start = next) {
        parse((unsigned long)(mode->parse_us * rounds_per_us));
        middle = cpu();
        render((unsigned long)(mode->render_us * rounds_per_us));
        end = cpu();
        usleep(mode->pause_us / 2 + (unsigned)rand_r(&seed) % mode->pause_us);
        next = cpu();
        add(number, PARSE, middle - start);
        add(number, RENDER, end - middle);
        add(number, REST, next - end);
    }
    return NULL;
}

#define WAIT(name)                                                                                \
    __attribute__((noinline, noclone, no_icf)) static void name(unsigned us, unsigned *seed) {            \
        unsigned long long end = now(CLOCK_MONOTONIC) + (us / 2 + (unsigned)rand_r(seed) % us) * 1000ull; \
        while (now(CLOCK_MONOTONIC) < end) {}                                                     \
    }
WAIT(parse_until)
WAIT(render_until)

static void deadlines(unsigned long number) {
    const struct mode *mode = chosen[number];
    unsigned seed = (unsigned)now(CLOCK_MONOTONIC);
    for (unsigned long long start = cpu(), middle, end;; start = end) {
        parse_until(mode->parse_us, &seed);
        middle = cpu();
        render_until(mode->render_us, &seed);
        end = cpu();
        add(number, PARSE, middle - start);
        add(number, RENDER, end - middle);
    }
}

static void *worker(void *argument) {
    unsigned long number = (unsigned long)argument;
    const struct mode *mode = chosen[number];
    volatile unsigned long long *known = truth + SLOTS * number;
    unsigned long parse_rounds = (unsigned long)(mode->parse_us * rounds_per_us);
    unsigned long render_rounds = (unsigned long)(mode->render_us * rounds_per_us);
    struct timespec time = {0, mode->pause_us * 1000l};
    struct itimerspec period = {time, time};
    int timer = timerfd_create(CLOCK_MONOTONIC, 0);
    pthread_getcpuclockid(pthread_self(), &clocks[number]);
    if (mode->pause == CALL) steady(number, parse_rounds);
    if (mode->pause == EXIT) turns(number);
    if (mode->pause == DEADLINE) deadlines(number);
    for (int i = 0; mode->pause == POOL && i < POOL_THREADS; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, pooled, argument)) exit(2);
    }
    if (mode->pause == POOL) for (;;) pause();
    if (mode->pause == TIMER) timerfd_settime(timer, 0, &period, NULL);
    for (unsigned long long start = cpu(), middle, end, next;; start = next) {
        unsigned long long expirations;
        parse(parse_rounds);
        middle = cpu();
        render(render_rounds);
        end = cpu();
        if (mode->pause == SLEEP) nanosleep(&time, NULL);
        else while (read(timer, &expirations, sizeof expirations) < 0) {}
        next = cpu();
        known[PARSE] += middle - start - look_ns;
        known[RENDER] += end - middle - look_ns;
        known[REST] += next - end + 2 * look_ns;
    }
    return NULL;
}

static void bring_up_to_date(void) {
    for (int i = 0; i < THREADS && chosen[i]; i++) {
        volatile unsigned long long *known = truth + SLOTS * i;
        known[TOTAL] = now(clocks[i]);
        if (chosen[i]->pause == EXIT) {
            known[REST] = known[TOTAL];
            known[TOTAL] += known[PARSE] + known[RENDER];
        }
        if (chosen[i]->pause == POOL) known[TOTAL] = known[PARSE] + known[RENDER] + known[REST];
        if (chosen[i]->pause != CALL) continue;
        known[REST] = (unsigned long long)((double)calls[i] * call_ns);
        known[PARSE] = known[TOTAL] - known[REST];
    }
}

static const struct mode *mode_of(const char *name) {
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
        if (!strcmp(modes[i].name, name)) return &modes[i];
    return NULL;
}

int main(int count, char **arguments) {
    const char *asked = count == 2 ? arguments[1] : "";
    chosen[0] = mode_of(asked);
    for (int group = 0; group < GROUPS; group++)
        for (int i = 0; i < THREADS && groups[group][1 + i] && !strcmp(groups[group][0], asked); i++)
            chosen[i] = mode_of(groups[group][1 + i]);
    if (!chosen[0]) return 2;
    measure();
    refresh = bring_up_to_date;
    for (unsigned long i = 0; i < THREADS && chosen[i]; i++) {
        char name[16];
        snprintf(name, sizeof name, "worker-%lu", i);
        start(worker, i, name);
    }
    while (!clocks[0] || (chosen[THREADS - 1] && !clocks[THREADS - 1])) usleep(1000);
    return answer();
}
