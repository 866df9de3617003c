/* Hand-written assembly: a function without a size, and behind it private
   code that no symbol names. */
#if defined(__x86_64__)
#define NOP "nop\n nop\n nop\n nop\n"
#else
#define NOP "nop\n"
#endif

__asm__(".text\n"
        ".globl without_size\n"
        ".type without_size, %function\n"
        "without_size:\n"
        ".cfi_startproc\n" NOP NOP NOP NOP ".cfi_endproc\n"
        ".cfi_startproc\n" NOP NOP NOP NOP ".cfi_endproc\n");
