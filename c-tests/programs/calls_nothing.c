/* A function calls a null pointer, and the handler of the fault computes. The program keeps frame pointers. Where no code
 * is, that is still the one of the function that has called: it must not be left out. */
// cflags: -O2 -fno-omit-frame-pointer
// record: samples=500&hz=500
// expect: every sample of caller has stack caller_main;call_nothing;[unknown]
// expect: every sample of caller has stack on_fault;burn
// expect: every sample of caller is complete
#include "host.h"
#include <setjmp.h>

static void (*volatile nothing)(void);
static volatile uint64_t sink;
static sigjmp_buf recovered;

FRAME static void burn(void)
{
    host_arrive();
    while (!atomic_load_explicit(&host_ending, memory_order_relaxed))
        sink++;
}
static void on_fault(int number)
{
    (void)number;
    burn();
    siglongjmp(recovered, 1);
}
FRAME static void call_nothing(void)
{
    nothing();
    NOT_A_TAIL_CALL();
}
FRAME static void *caller_main(void *argument)
{
    if (sigsetjmp(recovered, 1) == 0)
        call_nothing();
    return argument;
}

int main(void)
{
    struct sigaction action = {.sa_handler = on_fault};
    host_begin();
    HOST_CHECK(sigaction(SIGSEGV, &action, NULL) == 0);
    pthread_t caller = host_thread("caller", caller_main, NULL);
    host_wait_until_arrived(1);
    host_say("ready");
    host_wait_for_end();
    pthread_join(caller, NULL);
    return host_end();
}
