/* Functions, main among them, that align their stack to more than the ABI does and have room of a size that is known at run
 * time only: their frames are found through a saved pointer. Once blocked (main), once running (burner). */
// cflags: -O2 -fomit-frame-pointer
// record: samples=500&hz=500
// expect: every sample of main has stack _start;main;aligned;host_wait_for_end
// expect: every sample of main is complete
// expect: every sample of burner has stack burner_main;aligned;burn
// expect: every sample of burner is complete
#include "host.h"

static volatile uint64_t sink;
static volatile size_t length = 100;

FRAME static void burn(void)
{
    host_arrive();
    while (!atomic_load_explicit(&host_ending, memory_order_relaxed))
        sink++;
}
FRAME static void aligned(void (*work)(void))
{
    _Alignas(128) char fixed[256];
    char varying[length];
    __asm__ volatile("" ::"r"(fixed), "r"(varying) : "memory");
    work();
    __asm__ volatile("" ::"r"(fixed), "r"(varying) : "memory");
}
FRAME static void *burner_main(void *argument)
{
    aligned(burn);
    NOT_A_TAIL_CALL();
    return argument;
}

int main(void)
{
    _Alignas(64) char fixed[256];
    char varying[length];
    __asm__ volatile("" ::"r"(fixed), "r"(varying) : "memory");
    host_begin();
    pthread_t burner = host_thread("burner", burner_main, NULL);
    host_wait_until_arrived(1);
    host_say("ready");
    aligned(host_wait_for_end);
    pthread_join(burner, NULL);
    __asm__ volatile("" ::"r"(fixed), "r"(varying) : "memory");
    return host_end();
}
