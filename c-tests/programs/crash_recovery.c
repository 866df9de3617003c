/* A host that handles its own faults on an alternate stack and continues, as language runtimes and crash reporters do:
 * null pointers, and stacks that are used up to the guard page while they are sampled. The host must see its own faults
 * only, each with the address that it touched. The hazard: the agent's signal finds no room on the stack, and so makes
 * a fault. */
// cflags: -O2 -fno-optimize-sibling-calls -rdynamic
// record: seconds=1&hz=1000
// expect: thread recursing has stack recursing_main;recurse;recurse;recurse
// expect: thread dereferencing has stack dereferencing_main
#include "host.h"
#include <execinfo.h>
#include <setjmp.h>
#include <sys/mman.h>

enum { ALTERNATE = 64 << 10, STACK = 256 << 10 };

static _Thread_local sigjmp_buf back;
static _Thread_local char *expected_low, *expected_high;
static _Thread_local long faults;
static atomic_long unexpected, all_faults;
static atomic_uintptr_t strange;

static void on_fault(int number, siginfo_t *info, void *context)
{
    (void)number;
    (void)context;
    char *address = info->si_addr;
    void *frames[32];
    if (info->si_code <= 0 || info->si_code == SI_KERNEL || address < expected_low || address >= expected_high) {
        atomic_fetch_add(&unexpected, 1);
        atomic_store(&strange, (uintptr_t)address);
    }
    /* A reporter's look at its own stack; sometimes, as it is slow in a deep recursion. */
    atomic_fetch_add(&all_faults, 1);
    if (faults++ % 16 == 0 && backtrace(frames, 32) < 2)
        atomic_fetch_add(&unexpected, 1);
    siglongjmp(back, 1);
}
static void use_alternate_stack(void)
{
    stack_t stack = {.ss_size = ALTERNATE};
    stack.ss_sp = mmap(NULL, ALTERNATE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    HOST_CHECK(stack.ss_sp != MAP_FAILED && sigaltstack(&stack, NULL) == 0);
}

FRAME static uint64_t recurse(uint64_t depth)
{
    volatile char room[200];
    room[depth % sizeof room] = (char)depth;
    return depth == UINT64_MAX ? 0 : recurse(depth + 1) + (uint64_t)room[depth % sizeof room];
}
FRAME static void *recursing_main(void *argument)
{
    use_alternate_stack();
    /* The guard pages that glibc leaves below a thread's stack. */
    pthread_attr_t attributes;
    void *low;
    size_t size, guard;
    HOST_CHECK(pthread_getattr_np(pthread_self(), &attributes) == 0);
    HOST_CHECK(pthread_attr_getstack(&attributes, &low, &size) == 0);
    HOST_CHECK(pthread_attr_getguardsize(&attributes, &guard) == 0);
    expected_low = (char *)low - guard;
    expected_high = (char *)low + guard;
    while (!atomic_load(&host_ending))
        if (sigsetjmp(back, 1) == 0)
            recurse(0);
    return argument;
}
FRAME static void *dereferencing_main(void *argument)
{
    use_alternate_stack();
    expected_low = NULL;
    expected_high = (char *)4096;
    while (!atomic_load(&host_ending)) {
        volatile int *volatile nothing = NULL;
        if (sigsetjmp(back, 1) == 0)
            *nothing = 1;
    }
    return argument;
}

int main(void)
{
    host_begin();
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    HOST_CHECK(sigaction(SIGSEGV, &action, NULL) == 0 && sigaction(SIGBUS, &action, NULL) == 0);
    pthread_t recursing = host_thread("recursing", recursing_main, NULL);
    pthread_t dereferencing = host_thread("dereferencing", dereferencing_main, NULL);
    while (atomic_load(&all_faults) <= 100)
        NOT_A_TAIL_CALL();
    host_say("ready");
    host_wait_for_end();
    pthread_join(recursing, NULL);
    pthread_join(dereferencing, NULL);
    host_say("%ld faults, %ld that are not the host's (the last at %lx)", atomic_load(&all_faults), atomic_load(&unexpected),
             (unsigned long)atomic_load(&strange));
    HOST_CHECK(atomic_load(&all_faults) > 100 && atomic_load(&unexpected) == 0);
    return host_end();
}
