/* Code made at run time that keeps no frame pointer and tells the C++ runtime how its frames are left, as just-in-time
 * compilers do: a whole section, one description alone, and with room that the program lends. The frame pointer holds zero
 * there. Taking a registration back answers what it answers without the agent. */
// cflags: -O2 -fomit-frame-pointer
// libs: -lgcc_s
// record: samples=200&hz=500
// expect: every sample of section has stack section_main;burn
// expect: every sample of section is complete
// expect: every sample of single has stack single_main;burn
// expect: every sample of single is complete
// expect: every sample of lent has stack lent_main;wait_for_answer
// expect: every sample of lent is complete
#include "host.h"
#include <sys/mman.h>

void __register_frame(const void *);
void __deregister_frame(const void *);
void __register_frame_info(const void *, void *);
void *__deregister_frame_info(const void *);

typedef void work(void);
typedef void through(work *);
static volatile uint64_t sink;
static int ends[2];

struct made {
    unsigned char code[64];
    unsigned char frames[128];
};
static struct made *made;
static void *room[16];

/* push %rbp; sub $32,%rsp; xor %ebp,%ebp; call *%rdi; add $32,%rsp; pop %rbp; ret */
static const unsigned char code[] = {0x55, 0x48, 0x83, 0xec, 0x20, 0x31, 0xed, 0xff,
                                     0xd7, 0x48, 0x83, 0xc4, 0x20, 0x5d, 0xc3};
/* Length, 0, version 1, "zR", factors 1 and -8, return address 16, absolute pointers; CFA = rsp + 8. */
static const unsigned char common[] = {20, 0, 0, 0, 0, 0, 0, 0, 1, 'z', 'R', 0,
                                       1, 0x78, 16, 1, 0, 0x0c, 7, 8, 0x90, 1, 0, 0};
/* +1: CFA 16, rbp saved; +4: CFA 48; +8: CFA 16; +1: CFA 8, rbp restored. */
static const unsigned char rows[] = {0x41, 0x0e, 16, 0x86, 2,  0x44, 0x0e, 48,
                                     0x48, 0x0e, 16, 0x41, 0x0e, 8, 0xc6};

static unsigned char *description(struct made *piece)
{
    return piece->frames + sizeof common;
}
static void make(struct made *piece)
{
    uint32_t fields[2] = {4 + 16 + 1 + sizeof rows, sizeof common + 4};
    uint64_t range[2] = {(uintptr_t)piece->code, sizeof code};
    unsigned char *at = description(piece);
    memcpy(piece->code, code, sizeof code);
    memcpy(piece->frames, common, sizeof common);
    memcpy(at, fields, sizeof fields);
    memcpy(at + 8, range, sizeof range);
    memcpy(at + 25, rows, sizeof rows);
}

FRAME static void burn(void)
{
    host_arrive();
    while (!atomic_load_explicit(&host_ending, memory_order_relaxed))
        sink++;
}
FRAME static void wait_for_answer(void)
{
    char byte;
    host_arrive();
    ssize_t got = read(ends[0], &byte, 1);
    HOST_CHECK(got == 0);
}
FRAME static void call(struct made *piece, work *function)
{
#if defined(__x86_64__)
    ((through *)(uintptr_t)piece->code)(function);
#else
    (void)piece;
    function();
#endif
    NOT_A_TAIL_CALL();
}
FRAME static void *section_main(void *argument)
{
    call(&made[0], burn);
    return argument;
}
FRAME static void *single_main(void *argument)
{
    call(&made[1], burn);
    return argument;
}
FRAME static void *lent_main(void *argument)
{
    call(&made[2], wait_for_answer);
    return argument;
}

int main(void)
{
    host_begin();
    HOST_CHECK(pipe(ends) == 0);
    made = mmap(NULL, 3 * sizeof *made, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    HOST_CHECK(made != MAP_FAILED);
    for (int n = 0; n < 3; n++)
        make(&made[n]);
    __register_frame(made[0].frames);
    __register_frame(description(&made[1]));
    __register_frame_info(made[2].frames, room);
    pthread_t lent = host_thread("lent", lent_main, NULL);
    host_wait_until_blocked(1);
    pthread_t section = host_thread("section", section_main, NULL);
    pthread_t single = host_thread("single", single_main, NULL);
    host_wait_until_arrived(3);
    host_say("ready");
    host_wait_for_end();
    close(ends[1]);
    pthread_join(section, NULL);
    pthread_join(single, NULL);
    pthread_join(lent, NULL);
    __deregister_frame(made[0].frames);
    __deregister_frame(description(&made[1]));
    HOST_CHECK(__deregister_frame_info(made[2].frames) == room);
    munmap(made, 3 * sizeof *made);
    return host_end();
}
