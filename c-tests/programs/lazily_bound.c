/* The library of lazy_binding: functions that are chosen at their first call, by resolvers that take long. */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <unistd.h>

#define FRAME __attribute__((noinline, used))
#define EXPORTED __attribute__((visibility("default")))
#define NOT_A_TAIL_CALL() __asm__ volatile("" ::: "memory")

static atomic_bool *ending;
static atomic_int *arrived;
static int answer;
static volatile uint64_t sink;

static void chosen(void)
{
    sink++;
}
FRAME static void burn_until_the_end(void)
{
    atomic_fetch_add(arrived, 1);
    while (!atomic_load_explicit(ending, memory_order_relaxed))
        sink++;
}
FRAME static void read_until_the_end(void)
{
    char byte;
    atomic_fetch_add(arrived, 1);
    if (read(answer, &byte, 1) > 0)
        sink++;
}
static void (*choose_burning(void))(void)
{
    burn_until_the_end();
    NOT_A_TAIL_CALL();
    return chosen;
}
static void (*choose_reading(void))(void)
{
    read_until_the_end();
    NOT_A_TAIL_CALL();
    return chosen;
}
EXPORTED void burning(void) __attribute__((ifunc("choose_burning")));
EXPORTED void reading(void) __attribute__((ifunc("choose_reading")));

EXPORTED FRAME void call_burning(void)
{
    burning();
    NOT_A_TAIL_CALL();
}
EXPORTED FRAME void call_reading(void)
{
    reading();
    NOT_A_TAIL_CALL();
}
EXPORTED void prepare(atomic_bool *end, atomic_int *count, int descriptor)
{
    ending = end;
    arrived = count;
    answer = descriptor;
}
