/* A leaf loop that lives in vector and floating-point registers and, where the ABI has
 * one, in the red zone below the stack pointer. An interruption must leave them alone. */
// cflags: -O2
// record: samples=1000&hz=1000
// expect: share of checker with stack checker_main;keep_registers >= 0.9
// expect: every sample of checker is complete
#include "host.h"

static atomic_long changes;
static atomic_ulong rounds;

#if defined(__x86_64__)
/* Fills xmm0-15, x87's st(0) and the red zone, spins, and counts what differs. */
FRAME static long keep_once(uint64_t pattern)
{
    long wrong = 0;
    __asm__ volatile(
        "movq %[pattern], -8(%%rsp)\n movq %[pattern], -64(%%rsp)\n"
        "movq %[pattern], -128(%%rsp)\n"
        "movq %[pattern], %%xmm0\n punpcklqdq %%xmm0, %%xmm0\n"
        "movdqa %%xmm0, %%xmm1\n movdqa %%xmm0, %%xmm7\n"
        "movdqa %%xmm0, %%xmm8\n movdqa %%xmm0, %%xmm15\n"
        "fildq -64(%%rsp)\n"
        "movl $2000, %%ecx\n"
        "1: decl %%ecx\n jnz 1b\n"
        "fistpq -72(%%rsp)\n"
        "xorl %%ecx, %%ecx\n"
        "cmpq %[pattern], -8(%%rsp)\n jne 2f\n"
        "cmpq %[pattern], -64(%%rsp)\n jne 2f\n"
        "cmpq %[pattern], -72(%%rsp)\n jne 2f\n"
        "cmpq %[pattern], -128(%%rsp)\n jne 2f\n"
        "pcmpeqb %%xmm0, %%xmm1\n pcmpeqb %%xmm0, %%xmm7\n"
        "pcmpeqb %%xmm0, %%xmm8\n pcmpeqb %%xmm0, %%xmm15\n"
        "pand %%xmm7, %%xmm1\n pand %%xmm8, %%xmm1\n pand %%xmm15, %%xmm1\n"
        "pmovmskb %%xmm1, %%ecx\n cmpl $0xffff, %%ecx\n jne 2f\n"
        "movq %%xmm0, %%rcx\n cmpq %[pattern], %%rcx\n jne 2f\n"
        "jmp 3f\n"
        "2: movq $1, %[wrong]\n"
        "3:\n"
        : [wrong] "+r"(wrong)
        : [pattern] "r"(pattern)
        : "rcx", "cc", "memory", "xmm0", "xmm1", "xmm7", "xmm8", "xmm15", "st");
    return wrong;
}
#elif defined(__aarch64__)
/* Fills v0, v7, v8 and v31, spins, and counts what differs. There is no red zone. */
FRAME static long keep_once(uint64_t pattern)
{
    uint64_t different;
    __asm__ volatile(
        "dup v0.2d, %[pattern]\n mov v7.16b, v0.16b\n"
        "mov v8.16b, v0.16b\n mov v31.16b, v0.16b\n"
        "mov x9, #2000\n"
        "1: subs x9, x9, #1\n b.ne 1b\n"
        "fmov x9, d0\n eor %[different], x9, %[pattern]\n"
        "fmov x9, d7\n eor x9, x9, %[pattern]\n orr %[different], %[different], x9\n"
        "fmov x9, d8\n eor x9, x9, %[pattern]\n orr %[different], %[different], x9\n"
        "mov x9, v31.d[1]\n eor x9, x9, %[pattern]\n orr %[different], %[different], x9\n"
        : [different] "=&r"(different)
        : [pattern] "r"(pattern)
        : "x9", "cc", "memory", "v0", "v7", "v8", "v31");
    return different != 0;
}
#else
#error "no registers to check on this architecture"
#endif

FRAME static void keep_registers(void)
{
    uint64_t pattern = 0x123456789abcd;
    while (!atomic_load(&host_ending)) {
        pattern = (pattern * 5 + 1) & 0xfffffffffffff;
        if (keep_once(pattern) != 0)
            atomic_fetch_add(&changes, 1);
        atomic_fetch_add(&rounds, 1);
    }
}
FRAME static void *checker_main(void *argument)
{
    keep_registers();
    NOT_A_TAIL_CALL();
    return argument;
}

int main(void)
{
    host_begin();
    pthread_t checker = host_thread("checker", checker_main, NULL);
    while (atomic_load(&rounds) < 1000)
        NOT_A_TAIL_CALL();
    host_say("ready");
    host_wait_for_end();
    pthread_join(checker, NULL);
    HOST_CHECK(atomic_load(&changes) == 0);
    return host_end();
}
