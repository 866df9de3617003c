/* JIT code without a frame pointer (rbp is zero in it), and its unwind tables for __register_frame. */
#ifndef SWIPR_C_TESTS_JIT_CODE_H
#define SWIPR_C_TESTS_JIT_CODE_H

#include "host.h"
#include <sys/mman.h>

void __register_frame(const void *);
void __deregister_frame(const void *);
void __register_frame_info(const void *, void *);
void *__deregister_frame_info(const void *);

typedef void work(void);
typedef void through(work *);

struct made {
    unsigned char code[64];
    unsigned char frames[128];
};

/* push %rbp; sub $32,%rsp; xor %ebp,%ebp; call *%rdi; add $32,%rsp; pop %rbp; ret */
static const unsigned char code[] = {0x55, 0x48, 0x83, 0xec, 0x20, 0x31, 0xed, 0xff,
                                     0xd7, 0x48, 0x83, 0xc4, 0x20, 0x5d, 0xc3};
/* Length, 0, version 1, "zR", factors 1 and -8, return address 16, absolute pointers; CFA = rsp + 8. */
static const unsigned char common[] = {20, 0, 0, 0, 0, 0, 0, 0, 1, 'z', 'R', 0,
                                       1, 0x78, 16, 1, 0, 0x0c, 7, 8, 0x90, 1, 0, 0};
/* +1: CFA 16, rbp saved; +4: CFA 48; +8: CFA 16; +1: CFA 8, rbp restored. */
static const unsigned char rows[] = {0x41, 0x0e, 16, 0x86, 2,  0x44, 0x0e, 48,
                                     0x48, 0x0e, 16, 0x41, 0x0e, 8, 0xc6};

UNUSED static unsigned char *description(struct made *piece)
{
    return piece->frames + sizeof common;
}
/* A piece whose frame has room for so many bytes: a multiple of 16 below 100. */
UNUSED static void make(struct made *piece, unsigned char room)
{
    uint32_t fields[2] = {4 + 16 + 1 + sizeof rows, sizeof common + 4};
    uint64_t range[2] = {(uintptr_t)piece->code, sizeof code};
    unsigned char *at = description(piece);
    memcpy(piece->code, code, sizeof code);
    memcpy(piece->frames, common, sizeof common);
    memcpy(at, fields, sizeof fields);
    memcpy(at + 8, range, sizeof range);
    memcpy(at + 25, rows, sizeof rows);
    piece->code[4] = piece->code[12] = room;
    at[32] = 16 + room;
}

/* Memory for so many pieces. */
UNUSED static struct made *new_pieces(int count)
{
    size_t bytes = (size_t)count * sizeof(struct made);
    void *pieces = mmap(NULL, bytes, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    HOST_CHECK(pieces != MAP_FAILED);
    return pieces;
}
FRAME UNUSED static void call(struct made *piece, work *function)
{
#if defined(__x86_64__)
    ((through *)(uintptr_t)piece->code)(function);
#else
    (void)piece;
    function();
#endif
    NOT_A_TAIL_CALL();
}

#endif
