/* A thread of a 64-bit program that runs 32-bit code for a while (in another code segment), as emulators of other
 * systems do. The host must see that code count right. The hazard: the agent's signal interrupts the thread there,
 * where the stack pointer, the registers and the instructions mean something else. */
// cflags: -O2
// record: samples=1000&hz=1000
// expect: every sample of burner has stack burner_main;work
// expect: samples >= 300
#include "burner.h"
#include <sys/mman.h>

#define ROUNDS 2000000u

#ifdef __x86_64__
/* Below 4 GiB, where code of 32 bits can return to: takes another stack, makes a far call, takes the first one back. */
static const unsigned char way_there[] = {
    0x49, 0x89, 0xe4,             /* mov %rsp,%r12 */
    0x89, 0xf4,                   /* mov %esi,%esp */
    0x31, 0xc0,                   /* xor %eax,%eax */
    0xff, 0x1f,                   /* lcall *(%rdi) */
    0x4c, 0x89, 0xe4,             /* mov %r12,%rsp */
    0xc3,                         /* ret */
};
static const unsigned char code_of_32_bits[] = {
    0x40,                         /* inc %eax: in 64 bits a prefix */
    0x49,                         /* dec %ecx */
    0x75, 0xfc,                   /* jnz to the beginning */
    0xcb,                         /* lret */
};

FRAME static uint32_t count(char *low, uint32_t code, uint32_t stack)
{
    struct { uint32_t offset; uint16_t segment; } __attribute__((packed)) to = {code, 0x23};
    uint32_t counted;
    uint64_t rounds = ROUNDS;
    __asm__ volatile("sub $128, %%rsp\n\tcall *%[low]\n\tadd $128, %%rsp"
                     : "=a"(counted), "+c"(rounds)
                     : [low] "r"(low), "D"(&to), "S"((uint64_t)stack)
                     : "r12", "cc", "memory");
    return counted;
}
#endif
FRAME static void *emulator_main(void *argument)
{
#ifdef __x86_64__
    int protection = PROT_READ | PROT_WRITE | PROT_EXEC;
    char *low = mmap(NULL, 64 << 10, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
    HOST_CHECK(low != MAP_FAILED);
    memcpy(low, way_there, sizeof way_there);
    memcpy(low + 64, code_of_32_bits, sizeof code_of_32_bits);
    uint32_t at = (uint32_t)(uintptr_t)low;
    host_arrive();
    while (!atomic_load(&host_ending))
        HOST_CHECK(count(low, at + 64, at + (64 << 10) - 16) == ROUNDS);
#else
    host_arrive();
#endif
    return argument;
}

int main(void)
{
    return burner_beside("emulator", emulator_main);
}
