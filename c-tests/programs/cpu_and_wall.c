/* One thread burns CPU, three are blocked. Wall mode shows all of them, CPU mode only
 * the one that runs. So it is at 10,000 ticks a second. */
// cflags: -O2
// record: samples=200&hz=200&mode=wall
// expect: every sample of burner has stack burner_main;burn
// expect: every sample of sleeper has stack sleeper_main;sleep_long
// expect: threads >= 5
// record: samples=200&hz=200&mode=cpu
// expect: every sample of burner has stack burner_main;burn
// expect: thread sleeper is not sampled
// expect: thread main is not sampled
// record: samples=200&hz=200&mode=wall&format=folded
// expect: every sample of sleeper has stack sleeper_main;sleep_long
// expect: every sample of burner has stack burner_main;burn
// record: samples=10000&hz=10000
// expect: every tick is accounted for
// expect: every sample of sleeper has stack sleeper_main;sleep_long
// expect: every sample of burner has stack burner_main;burn
#include "host.h"

static volatile uint64_t sink;
static int nothing[2];

FRAME static void burn(void)
{
    while (!atomic_load(&host_ending))
        sink++;
}
FRAME static void *burner_main(void *argument)
{
    burn();
    NOT_A_TAIL_CALL();
    return argument;
}
/* A call that resumes after a stop of the process (clock.rs) and a handler; sleeps do not. */
FRAME static void sleep_long(void)
{
    char byte;
    host_arrive();
    ssize_t got = read(nothing[0], &byte, 1);
    NOT_A_TAIL_CALL();
    (void)got;
    HOST_CHECK(!"a sleeping thread was woken");
}
FRAME static void *sleeper_main(void *argument)
{
    sleep_long();
    NOT_A_TAIL_CALL();
    return argument;
}

int main(void)
{
    host_begin();
    HOST_CHECK(pipe(nothing) == 0);
    for (int i = 0; i < 3; i++)
        host_thread("sleeper", sleeper_main, NULL);
    host_wait_until_blocked(3);
    pthread_t burner = host_thread("burner", burner_main, NULL);
    while (sink == 0)
        NOT_A_TAIL_CALL();
    host_say("ready");
    host_wait_for_end();
    pthread_join(burner, NULL);
    return host_end();
}
