/* Code without frame pointers: the stack can be walked only by the unwind tables.
 * One thread burns CPU at the end of a known chain (it is signalled and walks its own
 * stack), one is blocked in read at the end of another (its stack is copied). */
// cflags: -O2 -fomit-frame-pointer
// record: samples=500&hz=500
// expect: samples >= 200
// expect: every sample of burner has stack burner_main;first;second;third;burn
// expect: every sample of burner is complete
// expect: every sample of reader has stack reader_main;ask;wait_for_answer
// expect: every sample of reader is complete
// expect: thread main has stack main;host_wait_for_end
// expect: every sample of main is complete
// expect: share of named frames in no_frame_pointer >= 0.99
#include "host.h"

static volatile uint64_t sink;
static int ends[2];

FRAME static void burn(uint64_t rounds)
{
    while (!atomic_load_explicit(&host_ending, memory_order_relaxed))
        sink += rounds;
}
FRAME static void third(uint64_t rounds)
{
    char room[200];
    memset(room, (int)rounds, sizeof room);
    __asm__ volatile("" ::"r"(room) : "memory");
    burn(rounds + (uint64_t)room[7]);
    NOT_A_TAIL_CALL();
}
FRAME static void second(uint64_t rounds)
{
    third(rounds * 3);
    NOT_A_TAIL_CALL();
}
FRAME static void first(uint64_t rounds)
{
    second(rounds + 1);
    NOT_A_TAIL_CALL();
}
FRAME static void *burner_main(void *argument)
{
    /* Named and inside the chain before the program is ready: no early sample. */
    host_arrive();
    first((uintptr_t)argument);
    NOT_A_TAIL_CALL();
    return NULL;
}

FRAME static void wait_for_answer(void)
{
    char byte;
    host_arrive();
    ssize_t got = read(ends[0], &byte, 1);
    HOST_CHECK(got == 0);
}
FRAME static void ask(void)
{
    wait_for_answer();
    NOT_A_TAIL_CALL();
}
FRAME static void *reader_main(void *argument)
{
    ask();
    NOT_A_TAIL_CALL();
    return argument;
}

int main(void)
{
    host_begin();
    HOST_CHECK(pipe(ends) == 0);
    pthread_t reader = host_thread("reader", reader_main, NULL);
    host_wait_until_blocked(1);
    pthread_t burner = host_thread("burner", burner_main, (void *)1);
    while (sink == 0)
        NOT_A_TAIL_CALL();
    host_say("ready");
    host_wait_for_end();
    close(ends[1]);
    pthread_join(burner, NULL);
    pthread_join(reader, NULL);
    return host_end();
}
