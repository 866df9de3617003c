/* Threads that change their stacks as fast as they can, in such a way that each stack tells by itself whether it is
 * true: the functions are a tree, a function's name is its caller's with one more digit, and no other function calls
 * it. A frame that is missing, too much or left from an earlier moment makes a pair of names that cannot be.
 *
 * The digit and the depth say what kind of function it is: an ordinary one, one with a stack of changing size, one with
 * an aligned stack, one that leaves by a jump and so is not in its callee's stack. `runner` threads only compute;
 * `waiter` threads block for short moments anywhere in the tree; a timer's signal interrupts both anywhere, and its
 * handler descends a tree of its own. */
// cflags: -O2 -fomit-frame-pointer -foptimize-sibling-calls
#include "host.h"
#include <alloca.h>
#include <fcntl.h>
#include <sched.h>

struct walk {
    uint64_t random;
    bool waits;
    uint64_t rounds;
};
typedef void node(struct walk *walk);

static int silence[2];
static volatile uint64_t sink;

/* xorshift64 */
static inline uint64_t draw(struct walk *walk)
{
    walk->random ^= walk->random << 13;
    walk->random ^= walk->random >> 7;
    walk->random ^= walk->random << 17;
    return walk->random;
}

/* A moment in a system call: by a time, by a pipe that stays empty, by giving way. */
FRAME static void wait_a_moment(struct walk *walk)
{
    const struct timespec time = {0, (long)(draw(walk) % 200000)};
    char byte;
    switch (draw(walk) % 16) {
    case 0:
        sched_yield();
        break;
    case 1:
        (void)!read(silence[0], &byte, 1);
        break;
    default:
        nanosleep(&time, NULL);
    }
    NOT_A_TAIL_CALL();
}
static inline __attribute__((always_inline)) void work(struct walk *walk)
{
    for (uint64_t rounds = draw(walk) % 16; rounds > 0; rounds--)
        sink += rounds;
    if (walk->waits && draw(walk) % 128 == 0)
        wait_a_moment(walk);
}
static inline __attribute__((always_inline)) void descend(struct walk *walk, node *one, node *other)
{
    for (uint64_t times = draw(walk) % 4; times > 0; times--) {
        node *volatile next = draw(walk) % 2 ? one : other;
        next(walk);
        work(walk);
    }
}

#define PLAIN(name)                                     \
    FRAME static void name(struct walk *walk)           \
    {                                                   \
        work(walk);                                     \
        descend(walk, name##0, name##1);                \
    }
/* The stack grows while the function runs. */
#define SIZED(name)                                     \
    FRAME static void name(struct walk *walk)           \
    {                                                   \
        work(walk);                                     \
        char *room = alloca(draw(walk) % 512 + 1);      \
        __asm__ volatile("" ::"r"(room) : "memory");    \
        descend(walk, name##0, name##1);                \
    }
#define ALIGNED(name)                                   \
    FRAME static void name(struct walk *walk)           \
    {                                                   \
        char room[96] __attribute__((aligned(64)));     \
        __asm__ volatile("" ::"r"(room) : "memory");    \
        work(walk);                                     \
        descend(walk, name##0, name##1);                \
    }
#define JUMPING(name)                                   \
    FRAME static void name(struct walk *walk)           \
    {                                                   \
        work(walk);                                     \
        if (draw(walk) % 2)                             \
            name##0(walk);                              \
        else                                            \
            name##1(walk);                              \
    }
/* With its name inside, so that no two are the same code, of which compilers keep one. */
#define LEAF(name)                                      \
    FRAME static void name(struct walk *walk)           \
    {                                                   \
        __asm__ volatile("# " #name);                   \
        work(walk);                                     \
    }

/* Names with an even number of digits are PLAIN and JUMPING, the others ALIGNED and SIZED, in a tree of an odd height. */
#define TREE_0(kind, name) LEAF(name)
#define TREE_1(kind, name) TREE_0(, name##0) TREE_0(, name##1) kind(name)
#define TREE_2(kind, name) TREE_1(PLAIN, name##0) TREE_1(JUMPING, name##1) kind(name)
#define TREE_3(kind, name) TREE_2(ALIGNED, name##0) TREE_2(SIZED, name##1) kind(name)
#define TREE_4(kind, name) TREE_3(PLAIN, name##0) TREE_3(JUMPING, name##1) kind(name)
#define TREE_5(kind, name) TREE_4(ALIGNED, name##0) TREE_4(SIZED, name##1) kind(name)
#define TREE_6(kind, name) TREE_5(PLAIN, name##0) TREE_5(JUMPING, name##1) kind(name)
#define TREE_7(kind, name) TREE_6(ALIGNED, name##0) TREE_6(SIZED, name##1) kind(name)
#define TREE_8(kind, name) TREE_7(PLAIN, name##0) TREE_7(JUMPING, name##1) kind(name)
#define TREE_9(kind, name) TREE_8(ALIGNED, name##0) TREE_8(SIZED, name##1) kind(name)

/* 1023 functions for threads, 63 for handlers of signals. */
TREE_9(PLAIN, f_)
TREE_5(PLAIN, h_)

FRAME static void on_timer(int number)
{
    int kept = errno;
    /* A different path at each call. Only this handler uses the seed. */
    static _Atomic uint64_t seed = 88172645463325252u;
    struct walk walk = {atomic_fetch_add(&seed, 0x9e3779b97f4a7c15u) | 1, (seed & 3) == 0, 0};
    (void)number;
    h_(&walk);
    NOT_A_TAIL_CALL();
    errno = kept;
}

static void start_timer(void)
{
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGUSR1};
    const struct itimerspec often = {{0, 700000}, {0, 700000}};
    timer_t timer;
#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif
    event.sigev_notify_thread_id = (pid_t)syscall(SYS_gettid);
    HOST_CHECK(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
    HOST_CHECK(timer_settime(timer, 0, &often, NULL) == 0);
}

enum { RUNNERS = 1, WAITERS = 8, THREADS = RUNNERS + WAITERS };

/* With an argument each thread has a painted alternate stack, on which there are no handlers but a profiler's. What
 * such a handler writes below the kernel's frame can be seen in the end. */
static bool has_painted_stacks;
enum { STACK_WORDS = 8192 };
#define PAINT 0x7061696e74656421u
static uint64_t signal_stacks[THREADS][STACK_WORDS];
/* The lower end of the kernel's frame for a signal. */
static _Atomic uintptr_t kernel_frames[THREADS];
static _Thread_local int thread_number;

FRAME static void on_probe(int number)
{
    (void)number;
    /* Above it there is the return address, where calls push it. */
    atomic_store(&kernel_frames[thread_number], (uintptr_t)__builtin_frame_address(0) + sizeof(void *));
}
static void use_painted_stack(void)
{
    static atomic_int next;
    const struct sigaction probe = {.sa_handler = on_probe, .sa_flags = SA_ONSTACK};
    thread_number = atomic_fetch_add(&next, 1);
    uint64_t *stack = signal_stacks[thread_number];
    const stack_t alternate = {.ss_sp = stack, .ss_size = sizeof signal_stacks[0]};
    HOST_CHECK(sigaltstack(&alternate, NULL) == 0);
    HOST_CHECK(sigaction(SIGUSR2, &probe, NULL) == 0);
    raise(SIGUSR2);
    HOST_CHECK(atomic_load(&kernel_frames[thread_number]) != 0);
    for (int i = 0; i < STACK_WORDS; i++)
        ((volatile uint64_t *)stack)[i] = PAINT;
}
/* The most that was written below the kernel's frame on any of the stacks. */
static long painted_over(void)
{
    long most = 0;
    for (int thread = 0; thread < THREADS; thread++) {
        const volatile uint64_t *stack = signal_stacks[thread], *word = stack;
        while (word < stack + STACK_WORDS && *word == PAINT)
            word++;
        long bytes = (long)(kernel_frames[thread] - (uintptr_t)word);
        if (bytes > most)
            most = bytes;
    }
    return most;
}

FRAME static void *thread_main(void *waits)
{
    struct walk walk = {(uint64_t)(uintptr_t)&walk | 1, waits != NULL, 0};
    if (has_painted_stacks)
        use_painted_stack();
    start_timer();
    host_arrive();
    while (!atomic_load(&host_ending)) {
        f_(&walk);
        walk.rounds++;
    }
    HOST_CHECK(walk.rounds > 0);
    return NULL;
}

int main(int count, char **arguments)
{
    (void)arguments;
    has_painted_stacks = count > 1;
    const struct sigaction action = {.sa_handler = on_timer, .sa_flags = SA_RESTART};
    pthread_t threads[THREADS];
    host_begin();
    HOST_CHECK(pipe2(silence, O_NONBLOCK) == 0);
    HOST_CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
    for (int i = 0; i < THREADS; i++)
        threads[i] = i < RUNNERS ? host_thread("runner", thread_main, NULL)
                                 : host_thread("waiter", thread_main, silence);
    host_wait_until_arrived(THREADS);
    host_say("ready");
    host_wait_for_end();
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    if (has_painted_stacks)
        host_say("used %ld", painted_over());
    return host_end();
}
