/* A thread without the C library's control block for a while (arch_prctl(2), ARCH_SET_FS), as emulators and others that run foreign
 * code have: a signal handler that reads anything relative to it would fault. */
// cflags: -O2
// record: samples=1000&hz=1000
// expect: share of bare with stack bare_main >= 0.5
#include "host.h"
#ifdef __x86_64__
#include <asm/prctl.h>
#endif

static volatile uint64_t sink;

FRAME static void *bare_main(void *argument)
{
#ifdef __x86_64__
    uint64_t block = 0;
    HOST_CHECK(syscall(SYS_arch_prctl, ARCH_GET_FS, &block) == 0 && block != 0);
    host_arrive();
    while (!atomic_load(&host_ending)) {
        uint64_t rounds = 100000000;
        /* From here to the second call nothing may use the block: not the stack protector, not errno. */
        __asm__ volatile("mov %[call], %%eax\n\tmov %[set], %%edi\n\txor %%esi, %%esi\n\tsyscall\n"
                         "1:\tdec %[rounds]\n\tjnz 1b\n\t"
                         "mov %[call], %%eax\n\tmov %[set], %%edi\n\tmov %[block], %%rsi\n\tsyscall\n\t"
                         : [rounds] "+r"(rounds)
                         : [call] "i"(SYS_arch_prctl), [set] "i"(ARCH_SET_FS), [block] "r"(block)
                         : "rax", "rcx", "rdi", "rsi", "r11", "cc", "memory");
    }
#else
    host_arrive();
    while (!atomic_load(&host_ending))
        sink++;
#endif
    return argument;
}

int main(void)
{
    host_begin();
    pthread_t bare = host_thread("bare", bare_main, NULL);
    host_wait_until_arrived(1);
    host_say("ready");
    host_wait_for_end();
    pthread_join(bare, NULL);
    return host_end();
}
