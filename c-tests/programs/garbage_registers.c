/* Hand-written code that uses the stack pointer and the frame pointer for something else, with an alternate signal
 * stack, as such code needs. The host must see the thread continue, whatever the two point to. The hazard: the walk
 * faults or does not end. */
// cflags: -O2
// record: samples=500&hz=500
// expect: samples >= 300
// expect: thread burner has stack burner_main
#include "burner.h"
#include <sys/mman.h>

static const uint64_t garbage[] = {0, 8, 0xffffffffffffffff, 0x8000000000000000, 0x7ffffffff000, 0x12345, 0xffff800000000000};

#ifdef __x86_64__
/* Counts with both registers holding what it is given. */
FRAME static void count_with(uint64_t sp, uint64_t fp, uint64_t rounds)
{
    uint64_t saved_sp, saved_fp;
    __asm__ volatile("mov %%rsp, %0\n\tmov %%rbp, %1\n\t"
                     "mov %2, %%rsp\n\tmov %3, %%rbp\n"
                     "1:\tdec %4\n\tjnz 1b\n\t"
                     "mov %0, %%rsp\n\tmov %1, %%rbp\n\t"
                     : "=&r"(saved_sp), "=&r"(saved_fp)
                     : "r"(sp), "r"(fp), "r"(rounds)
                     : "cc", "memory");
}
#else
FRAME static void count_with(uint64_t sp, uint64_t fp, uint64_t rounds)
{
    for (uint64_t i = 0; i < rounds; i++)
        sink += (sp ^ fp) & 1;
}
#endif
FRAME static void *garbage_main(void *argument)
{
    stack_t stack = {.ss_size = 64 << 10};
    stack.ss_sp = mmap(NULL, stack.ss_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    HOST_CHECK(stack.ss_sp != MAP_FAILED && sigaltstack(&stack, NULL) == 0);
    size_t kinds = sizeof garbage / sizeof *garbage;
    for (size_t i = 0; !atomic_load(&host_ending); i++)
        count_with(garbage[i % kinds], garbage[i / kinds % kinds], 200000);
    return argument;
}

int main(void)
{
    host_begin();
    pthread_t burner = burner_begin();
    pthread_t strange = host_thread("garbage", garbage_main, NULL);
    host_say("ready");
    host_wait_for_end();
    pthread_join(burner, NULL);
    pthread_join(strange, NULL);
    return host_end();
}
