/* A signal handler that another signal's handler interrupts: on the thread's own stack, and on an alternate one. What both
 * interrupted is on the stack, out to where the thread began. */
// cflags: -O2 -fomit-frame-pointer
// record: samples=500&hz=500
// expect: every sample of plain has stack plain_main;work;outer_handler;between;inner_handler;burn
// expect: every sample of plain is complete
// expect: every sample of alternate has stack alternate_main;work;outer_handler;between;inner_handler;burn
// expect: every sample of alternate is complete
// expect: every sample of reader has stack reader_main;work;outer_handler;between;reading_handler
// expect: every sample of reader is complete
#include "host.h"

static volatile uint64_t sink;
static int ends[2];

FRAME static void burn(void)
{
    host_arrive();
    while (!atomic_load_explicit(&host_ending, memory_order_relaxed))
        sink++;
}
FRAME static void inner_handler(int number)
{
    (void)number;
    burn();
    NOT_A_TAIL_CALL();
}
FRAME static void reading_handler(int number)
{
    char byte;
    (void)number;
    host_arrive();
    ssize_t got = read(ends[0], &byte, 1);
    HOST_CHECK(got == 0);
}
FRAME static void between(int number)
{
    pthread_kill(pthread_self(), number);
    NOT_A_TAIL_CALL();
}
FRAME static void outer_handler(int number)
{
    between(number == SIGUSR1 ? SIGUSR2 : SIGWINCH);
    NOT_A_TAIL_CALL();
}
FRAME static void work(int number)
{
    pthread_kill(pthread_self(), number);
    NOT_A_TAIL_CALL();
}
FRAME static void *plain_main(void *argument)
{
    work(SIGUSR1);
    return argument;
}
FRAME static void *alternate_main(void *argument)
{
    stack_t alternate = {.ss_sp = malloc(64 * 1024), .ss_size = 64 * 1024};
    HOST_CHECK(alternate.ss_sp != NULL && sigaltstack(&alternate, NULL) == 0);
    work(SIGUSR1);
    return argument;
}
FRAME static void *reader_main(void *argument)
{
    work(SIGPWR);
    return argument;
}

int main(void)
{
    struct sigaction outer = {.sa_handler = outer_handler, .sa_flags = SA_ONSTACK};
    struct sigaction inner = {.sa_handler = inner_handler, .sa_flags = SA_ONSTACK};
    struct sigaction reading = {.sa_handler = reading_handler};
    host_begin();
    HOST_CHECK(pipe(ends) == 0);
    HOST_CHECK(sigaction(SIGUSR1, &outer, NULL) == 0 && sigaction(SIGUSR2, &inner, NULL) == 0);
    HOST_CHECK(sigaction(SIGPWR, &outer, NULL) == 0 && sigaction(SIGWINCH, &reading, NULL) == 0);
    pthread_t reader = host_thread("reader", reader_main, NULL);
    host_wait_until_blocked(1);
    pthread_t plain = host_thread("plain", plain_main, NULL);
    pthread_t alternate = host_thread("alternate", alternate_main, NULL);
    host_wait_until_arrived(3);
    host_say("ready");
    host_wait_for_end();
    close(ends[1]);
    pthread_join(plain, NULL);
    pthread_join(alternate, NULL);
    pthread_join(reader, NULL);
    return host_end();
}
