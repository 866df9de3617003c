/* Two threads with alternate signal stacks (sigaltstack(2)). The agent's signal interrupts ordinary code of `small`,
 * whose alternate stack has 8 KiB above a guard page. It interrupts `nested` in a handler of the host's that already
 * runs on the alternate stack. The host must see neither stack overflow. The samples of `nested` must continue from the
 * alternate stack to the thread's own. The hazard: the agent's handler needs more room than an alternate stack has. */
// cflags: -O2
// record: samples=500&hz=500
// expect: every sample of small has stack small_main;small_work
// expect: every sample of small is complete
// expect: thread nested has stack nested_main;interrupted_work;on_signal;handler_work
// expect: every sample of nested has stack on_signal;handler_work
#include "host.h"
#include <sys/auxv.h>
#include <sys/mman.h>

#ifndef AT_MINSIGSTKSZ
#define AT_MINSIGSTKSZ 51
#endif

static volatile uint64_t sink;
static atomic_int handlers_running;

/* An alternate stack for this thread, with a guard page at its lower end. */
static void use_alternate_stack(size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    bytes = (bytes + page - 1) / page * page;
    char *memory = mmap(NULL, bytes + page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    HOST_CHECK(memory != MAP_FAILED);
    HOST_CHECK(mprotect(memory + page, bytes, PROT_READ | PROT_WRITE) == 0);
    stack_t stack = {.ss_sp = memory + page, .ss_size = bytes};
    HOST_CHECK(sigaltstack(&stack, NULL) == 0);
}

FRAME static void small_work(void)
{
    host_arrive();
    while (!atomic_load(&host_ending))
        sink++;
}
FRAME static void *small_main(void *argument)
{
    use_alternate_stack(8192);
    small_work();
    NOT_A_TAIL_CALL();
    return argument;
}

FRAME static void handler_work(void)
{
    atomic_fetch_add(&handlers_running, 1);
    while (!atomic_load(&host_ending))
        sink++;
}
FRAME static void on_signal(int number)
{
    (void)number;
    handler_work();
    NOT_A_TAIL_CALL();
}
FRAME static void interrupted_work(void)
{
    host_arrive();
    while (!atomic_load(&host_ending))
        sink++;
}
FRAME static void *nested_main(void *argument)
{
    /* What the kernel may write for two signals, and room for the handlers. */
    use_alternate_stack(2 * getauxval(AT_MINSIGSTKSZ) + 16384);
    interrupted_work();
    NOT_A_TAIL_CALL();
    return argument;
}

int main(void)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};
    host_begin();
    HOST_CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
    pthread_t small = host_thread("small", small_main, NULL);
    pthread_t nested = host_thread("nested", nested_main, NULL);
    host_wait_until_arrived(2);
    pthread_kill(nested, SIGUSR1);
    while (atomic_load(&handlers_running) == 0)
        NOT_A_TAIL_CALL();
    host_say("ready");
    host_wait_for_end();
    pthread_join(small, NULL);
    pthread_join(nested, NULL);
    return host_end();
}
