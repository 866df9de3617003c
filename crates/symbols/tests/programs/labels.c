/* Assembly as in video codecs: labels without a size or unwind information, and behind them code of its own, which is
   called, or whose address is taken. The hidden symbols are stripped. */
#define LABEL(NAME, SCOPE) "." SCOPE " " #NAME "\n" #NAME ":\n"

__asm__(".text\n"
        LABEL(label, "globl") ".skip 512, 0x90\n"
        LABEL(called, "local") ".skip 512, 0x90\n"
        LABEL(taken, "local") ".skip 8192, 0x90\n"
        LABEL(far_away, "globl") ".skip 8192, 0x90\n"
#if defined(__x86_64__)
        "call called\n"
        "lea taken(%rip), %rax\n"
        "ret\n"
#else
        "bl called\n"
        "ret\n"
#endif
);
