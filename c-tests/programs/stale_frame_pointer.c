/* A stack that the program allocated itself, with memory above it in the same mapping that comes and goes, and code
 * without unwind information whose frame pointer still points into that memory: nothing but the stack in use may be
 * read as if it were sure to be there. */
// cflags: -O2
// record: seconds=2&hz=2000
// expect: thread worker has stack worker_main
#include "host.h"
#include <sys/mman.h>

enum { STACK = 256 << 10, ABOVE = 1 << 20 };
static char *base;

/* push %rbp; mov %rdi,%rbp; mov %rsi,%rcx; dec %rcx; jnz; pop %rbp; ret */
static const unsigned char code[] = {0x55, 0x48, 0x89, 0xfd, 0x48, 0x89, 0xf1, 0x48, 0xff, 0xc9, 0x75, 0xfb, 0x5d, 0xc3};

static void protect_above(int protection)
{
    HOST_CHECK(mprotect(base + STACK, ABOVE, protection) == 0);
}
FRAME static void *worker_main(void *made)
{
    void (*run)(void *, long) = (void (*)(void *, long))made;
    host_arrive();
    while (!atomic_load(&host_ending)) {
        for (volatile int i = 0; i < 2000000; i++) {}
        protect_above(PROT_READ | PROT_WRITE);
        run(base + STACK + ABOVE / 2, 10000000);
        protect_above(PROT_NONE);
        run(base + STACK + ABOVE / 2, 10000000);
        NOT_A_TAIL_CALL();
    }
    return NULL;
}

int main(void)
{
    pthread_t worker;
    pthread_attr_t attributes;
    host_begin();
    char *made = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    base = mmap(NULL, STACK + ABOVE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    HOST_CHECK(made != MAP_FAILED && base != MAP_FAILED);
    memcpy(made, code, sizeof code);
    pthread_attr_init(&attributes);
    HOST_CHECK(pthread_attr_setstack(&attributes, base, STACK) == 0);
    HOST_CHECK(pthread_create(&worker, &attributes, worker_main, made) == 0);
    pthread_setname_np(worker, "worker");
    host_say("ready");
    host_wait_for_end();
    pthread_join(worker, NULL);
    return host_end();
}
