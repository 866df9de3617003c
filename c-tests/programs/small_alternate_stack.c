/* Alternate signal stacks of 2 KiB, the smallest that the system allows: the kernel cannot put a signal's frame there
 * (3.4 KiB with AVX-512), and kills the process. The host must live. The recording must show such threads in system
 * calls, and count their running time as not sampled (`unsampled_cpu_ns`). A thread that has given its small stack back
 * must be sampled. The hazard: the agent signals a thread that has one. */
// cflags: -O2
// record: seconds=2&hz=1000
// expect: thread sleeper has stack sleeper_main;nap
// expect: thread other has stack other_main;compute
// expect: stats unsampled_cpu_ns >= 1
#include "host.h"

static volatile uint64_t sink;

static void use_small_stack(char *memory, size_t bytes)
{
    stack_t stack = {.ss_sp = memory, .ss_size = bytes};
    HOST_CHECK(sigaltstack(&stack, NULL) == 0);
}
FRAME static void compute(void)
{
    for (long i = 0; i < 3000000 && !atomic_load(&host_ending); i++)
        sink++;
}
FRAME static void nap(void)
{
    const struct timespec time = {0, 3000000};
    nanosleep(&time, NULL);
    NOT_A_TAIL_CALL();
}
FRAME static void *small_main(void *argument)
{
    static char memory[2048];
    use_small_stack(memory, sizeof memory);
    host_arrive();
    while (!atomic_load(&host_ending))
        compute();
    return argument;
}
FRAME static void *sleeper_main(void *argument)
{
    static char memory[2048];
    use_small_stack(memory, sizeof memory);
    host_arrive();
    while (!atomic_load(&host_ending)) {
        compute();
        nap();
    }
    return argument;
}
static void on_own_signal(int number)
{
    (void)number;
    compute();
}
/* Its stack has room for the frame of one signal, its own, not for one of the agent's as well. */
FRAME static void *handler_main(void *argument)
{
    static char memory[6000];
    use_small_stack(memory, sizeof memory);
    host_arrive();
    while (!atomic_load(&host_ending))
        HOST_CHECK(pthread_kill(pthread_self(), SIGUSR1) == 0);
    return argument;
}
/* One that has given its small stack back, and one that gets it while it is recorded. */
FRAME static void *other_main(void *argument)
{
    char memory[2048];
    use_small_stack(memory, sizeof memory);
    stack_t none = {.ss_flags = SS_DISABLE};
    HOST_CHECK(sigaltstack(&none, NULL) == 0);
    host_arrive();
    while (!atomic_load(&host_ending))
        compute();
    return argument;
}
FRAME static void *changing_main(void *argument)
{
    char memory[2048];
    host_arrive();
    while (!atomic_load(&host_ending)) {
        stack_t none = {.ss_flags = SS_DISABLE};
        compute();
        use_small_stack(memory, sizeof memory);
        compute();
        HOST_CHECK(sigaltstack(&none, NULL) == 0);
    }
    return argument;
}

int main(void)
{
    struct sigaction action = {.sa_handler = on_own_signal, .sa_flags = SA_ONSTACK};
    host_begin();
    HOST_CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
    pthread_t threads[] = {
        host_thread("small", small_main, NULL),
        host_thread("sleeper", sleeper_main, NULL),
        host_thread("other", other_main, NULL),
        host_thread("changing", changing_main, NULL),
        host_thread("handler", handler_main, NULL),
    };
    host_wait_until_arrived(5);
    host_say("ready");
    host_wait_for_end();
    for (size_t i = 0; i < sizeof threads / sizeof *threads; i++)
        pthread_join(threads[i], NULL);
    return host_end();
}
