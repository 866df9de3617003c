/* A host that gives each signal a handler, and takes it away again, while it is recorded. sigaction(2) must say what the
 * host has set. No handler may be called: nobody sends a signal. The hazards: the host sees the agent's handler, and the
 * host's handler is called for the agent's signal. */
// cflags: -O2
// record: seconds=4&hz=500&mode=cpu
// expect: samples >= 50
#include "host.h"

static atomic_int calls;
static struct sigaction at_start[65];

static void on_signal(int number)
{
    (void)number;
    atomic_fetch_add(&calls, 1);
}
static void *busy_main(void *argument)
{
    while (!atomic_load(&host_ending))
        for (volatile int i = 0; i < 100000; i++) {}
    return argument;
}
static bool is_left_out(int number)
{
    return number == SIGKILL || number == SIGSTOP || number == SIGALRM || (number > SIGSYS && number < SIGRTMIN);
}
static void *changing_main(void *argument)
{
    const struct timespec moment = {0, 3000000};
    const struct sigaction handled = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    struct sigaction before;
    while (!atomic_load(&host_ending)) {
        for (int number = 1; number <= SIGRTMAX; number++)
            if (!is_left_out(number))
                HOST_CHECK(sigaction(number, &handled, &before) == 0 && before.sa_handler == at_start[number].sa_handler);
        nanosleep(&moment, NULL);
        HOST_CHECK(atomic_load(&calls) == 0);
        for (int number = 1; number <= SIGRTMAX; number++)
            if (!is_left_out(number))
                HOST_CHECK(sigaction(number, &at_start[number], &before) == 0 && before.sa_handler == on_signal);
        nanosleep(&moment, NULL);
    }
    return argument;
}

int main(void)
{
    pthread_t busy, changing;
    host_begin();
    for (int number = 1; number <= SIGRTMAX; number++)
        if (!is_left_out(number))
            HOST_CHECK(sigaction(number, NULL, &at_start[number]) == 0);
    busy = host_thread("busy", busy_main, NULL);
    changing = host_thread("changing", changing_main, NULL);
    host_say("ready");
    host_wait_for_end();
    pthread_join(busy, NULL);
    pthread_join(changing, NULL);
    return host_end();
}
