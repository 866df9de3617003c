/* A function that the compiler splits: what seldom runs is in another section, far from the rest, with a frame description
 * of its own that begins in the middle of things. Samples are in the cold part and below it. */
// cflags: -O2 -fomit-frame-pointer -freorder-blocks-and-partition
// record: samples=500&hz=500
// expect: every sample of burner has stack burner_main;split*;burn
// expect: every sample of burner is complete
// expect: every sample of reader has stack reader_main;split*;wait_for_answer
// expect: every sample of reader is complete
#include "host.h"

static volatile uint64_t sink;
static int ends[2];

FRAME __attribute__((cold)) static void burn(void)
{
    host_arrive();
    while (!atomic_load_explicit(&host_ending, memory_order_relaxed))
        sink++;
}
FRAME __attribute__((cold)) static void wait_for_answer(void)
{
    char byte;
    host_arrive();
    ssize_t got = read(ends[0], &byte, 1);
    HOST_CHECK(got == 0);
}
FRAME static uint64_t split(uint64_t value, void (*seldom)(void))
{
    char room[300];
    uint64_t a = value * 3, b = value ^ 5, c = value + 7;
    memset(room, (int)value, sizeof room);
    if (__builtin_expect(value > 100, 0)) {
        __asm__ volatile("" ::"r"(room), "r"(a), "r"(b), "r"(c) : "memory");
        seldom();
        sink += a + b + c;
    }
    return a + b + c + (uint64_t)room[value & 255];
}
FRAME static void *burner_main(void *argument)
{
    sink += split(1, burn);
    sink += split(101, burn);
    return argument;
}
FRAME static void *reader_main(void *argument)
{
    sink += split(102, wait_for_answer);
    return argument;
}

int main(void)
{
    host_begin();
    HOST_CHECK(pipe(ends) == 0);
    pthread_t reader = host_thread("reader", reader_main, NULL);
    host_wait_until_blocked(1);
    pthread_t burner = host_thread("burner", burner_main, NULL);
    host_wait_until_arrived(2);
    host_say("ready");
    host_wait_for_end();
    close(ends[1]);
    pthread_join(burner, NULL);
    pthread_join(reader, NULL);
    return host_end();
}
