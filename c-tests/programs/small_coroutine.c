/* A coroutine whose stack has as much room as its calls need and no more, above memory that cannot be written, in a thread with an alternate
 * stack for signals. It computes and sleeps all the time. The hazard: a handler that writes below the coroutine's stack pointer crashes it. */
// cflags: -O2
// record: samples=8000&hz=4000&mode=cpu
// expect: samples >= 30
#include "host.h"

#include <sys/mman.h>
#include <ucontext.h>

#define ROOM 240
#define PAGE 4096

static volatile uint64_t sink;
static ucontext_t thread, coroutine;

FRAME static void sleeps(void)
{
    static const struct timespec moment = {0, 60000};
    while (!atomic_load(&host_ending)) {
        for (int i = 0; i < 100000; i++)
            sink++;
        nanosleep(&moment, NULL);
    }
}
FRAME static void *runs(void *argument)
{
    static char alternate[65536];
    const stack_t signals = {.ss_sp = alternate, .ss_size = sizeof alternate};
    HOST_CHECK(sigaltstack(&signals, NULL) == 0);
    char *memory = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    HOST_CHECK(memory != MAP_FAILED && mprotect(memory, PAGE, PROT_NONE) == 0);
    nanosleep(&(struct timespec){0, 1}, NULL); /* the loader needs more, the first time */
    HOST_CHECK(getcontext(&coroutine) == 0);
    coroutine.uc_stack = (stack_t){.ss_sp = memory + PAGE, .ss_size = ROOM};
    coroutine.uc_link = &thread;
    makecontext(&coroutine, sleeps, 0);
    host_arrive();
    HOST_CHECK(swapcontext(&thread, &coroutine) == 0);
    return argument;
}

int main(void)
{
    host_begin();
    pthread_t runner = host_thread("runs", runs, NULL);
    host_wait_until_arrived(1);
    host_say("ready");
    host_wait_for_end();
    pthread_join(runner, NULL);
    return host_end();
}
