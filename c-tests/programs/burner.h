/* A thread that computes until its program is to end. */
#ifndef SWIPR_C_TESTS_BURNER_H
#define SWIPR_C_TESTS_BURNER_H

#include "host.h"

static volatile uint64_t sink;

FRAME static void work(void)
{
    while (!atomic_load(&host_ending))
        sink++;
}
FRAME static void *burner_main(void *argument)
{
    work();
    NOT_A_TAIL_CALL();
    return argument;
}
/* Starts it; it computes already. */
UNUSED static pthread_t burner_begin(void)
{
    pthread_t burner = host_thread("burner", burner_main, NULL);
    while (sink == 0)
        NOT_A_TAIL_CALL();
    return burner;
}
/* The main function of a program in which it computes beside a thread, which arrives when it is ready and ends with the program. */
UNUSED static int burner_beside(const char *name, void *(*thread_main)(void *))
{
    host_begin();
    pthread_t burner = burner_begin();
    pthread_t other = host_thread(name, thread_main, NULL);
    host_wait_until_arrived(1);
    host_say("ready");
    host_wait_for_end();
    pthread_join(burner, NULL);
    pthread_join(other, NULL);
    return host_end();
}

#endif
