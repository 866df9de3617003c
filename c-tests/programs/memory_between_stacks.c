/* A coroutine whose stack is below that of its thread, in one mapping, and nothing is pushed on it at its entry: what
 * unwind information calls the entry's caller is the memory between the two stacks. The program unmaps and maps that
 * memory again all the time, as a pool of stacks does. The hazard: a handler that takes all memory up to the thread's
 * control block for the thread's stack crashes the program. */
// cflags: -O2
// record: samples=500&hz=500
// expect: every sample of coroutine has stack entry;burn
// record: samples=500&hz=500&mode=cpu
// expect: every sample of coroutine has stack entry;burn
#include "host.h"
#include <sys/mman.h>

#if defined(__x86_64__)
#define STACK (1024 * 1024)
#define BETWEEN (64 * 1024)

static volatile uint64_t sink;
static char *memory;
void *resumer_sp;

FRAME void burn(void)
{
    host_arrive();
    while (!atomic_load_explicit(&host_ending, memory_order_relaxed))
        sink++;
}
/* Calls burn on the stack that ends at `end`, and comes back. */
void resume(void *end);
__asm__(".text\n.p2align 4\n.type entry, @function\nentry:\n"
        ".cfi_startproc\n"
        "call burn\n"
        "mov resumer_sp(%rip), %rsp\n"
        "jmp resumed\n"
        ".cfi_endproc\n.size entry, .-entry\n"
        ".p2align 4\n.globl resume\n.type resume, @function\nresume:\n"
        ".cfi_startproc\n"
        "push %rbx\n.cfi_adjust_cfa_offset 8\n.cfi_offset rbx, -16\n"
        "mov %rsp, resumer_sp(%rip)\n"
        "mov %rdi, %rsp\n"
        "jmp entry\n"
        "resumed:\n"
        "pop %rbx\n.cfi_adjust_cfa_offset -8\n.cfi_restore rbx\n"
        "ret\n.cfi_endproc\n.size resume, .-resume\n");

static void map(void *place, size_t bytes, int flags)
{
    void *mapped = mmap(place, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK | flags, -1, 0);
    HOST_CHECK(mapped != MAP_FAILED);
    memory = place == NULL ? mapped : memory;
}
FRAME static void *coroutine_main(void *argument)
{
    resume(memory + STACK);
    return argument;
}
FRAME static void *pool_main(void *argument)
{
    struct timespec moment = {0, 2000000};
    while (!atomic_load(&host_ending)) {
        HOST_CHECK(munmap(memory + STACK, BETWEEN) == 0);
        nanosleep(&moment, NULL);
        map(memory + STACK, BETWEEN, MAP_FIXED);
        nanosleep(&moment, NULL);
    }
    return argument;
}

int main(void)
{
    pthread_t coroutine;
    pthread_attr_t attributes;
    host_begin();
    map(NULL, 2 * STACK + BETWEEN, 0);
    HOST_CHECK(pthread_attr_init(&attributes) == 0);
    HOST_CHECK(pthread_attr_setstack(&attributes, memory + STACK + BETWEEN, STACK) == 0);
    HOST_CHECK(pthread_create(&coroutine, &attributes, coroutine_main, NULL) == 0);
    pthread_setname_np(coroutine, "coroutine");
    pthread_t pool = host_thread("pool", pool_main, NULL);
    host_wait_until_arrived(1);
    host_say("ready");
    host_wait_for_end();
    pthread_join(coroutine, NULL);
    pthread_join(pool, NULL);
    return host_end();
}
#else
#error "the entry is written in x86-64's assembly"
#endif
