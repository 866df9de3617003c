/* Threads that spend their time in a linker's stubs: a loop of calls to a short function of another library (through the PLT),
 * and of calls to one that is chosen when the program starts (an IFUNC). Everything is bound before the program begins
 * (`-z now`), so the stubs have their short form; stubs_bound_lazily.c has the other. */
// cflags: -O2 -fplt -fno-builtin -fcf-protection=none -Wl,-z,now
// record: samples=500&hz=500
// expect: every sample of library has stack library_main;call_again
// expect: every sample of library is complete
// expect: every sample of chosen has stack chosen_main;choose_again
// expect: every sample of chosen is complete
#include "host.h"

static volatile uint64_t sink;

FRAME static void call_again(void)
{
    host_arrive();
    while (!atomic_load_explicit(&host_ending, memory_order_relaxed))
        for (int n = 0; n < 1000; n++)
            sink += (uint64_t)labs(n);
}
#if defined(__x86_64__)
static int one(int value)
{
    return value + 1;
}
static int (*choose(void))(int)
{
    return one;
}
FRAME int chosen_at_start(int value) __attribute__((ifunc("choose")));
#else
FRAME int chosen_at_start(int value)
{
    return value + 1;
}
#endif
FRAME static void choose_again(void)
{
    host_arrive();
    while (!atomic_load_explicit(&host_ending, memory_order_relaxed))
        for (int n = 0; n < 1000; n++)
            sink += (uint64_t)chosen_at_start(n);
}
FRAME static void *library_main(void *argument)
{
    call_again();
    NOT_A_TAIL_CALL();
    return argument;
}
FRAME static void *chosen_main(void *argument)
{
    choose_again();
    NOT_A_TAIL_CALL();
    return argument;
}

int main(void)
{
    host_begin();
    pthread_t library = host_thread("library", library_main, NULL);
    pthread_t chosen = host_thread("chosen", chosen_main, NULL);
    host_wait_until_arrived(2);
    host_say("ready");
    host_wait_for_end();
    pthread_join(library, NULL);
    pthread_join(chosen, NULL);
    return host_end();
}
