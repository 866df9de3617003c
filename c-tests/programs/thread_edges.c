/* Threads at their very edges: those that do nothing but begin and end, sampled wherever they are met, and one
 * made by clone(2), of which the C library does not know, on a stack that ends right above its first
 * function's argument. Their stacks end where the C library's first instructions for them are. */
// cflags: -O2 -fomit-frame-pointer
// record: samples=4000&hz=2000
// expect: every sample of brief is complete
// expect: every sample of raw has stack raw_main;burn
// expect: every sample of raw is complete
// expect: share of raw with stack *process_vm_readv* <= 0
#include "host.h"
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#define STACK_BYTES (64 * 1024)

static volatile uint64_t sink;
static atomic_int raw_lives = 1;

FRAME static void *nothing(void *argument)
{
    return argument;
}
FRAME static void *brief_main(void *argument)
{
    while (!atomic_load(&host_ending)) {
        pthread_t threads[16];
        for (int n = 0; n < 16; n++) {
            errno = pthread_create(&threads[n], NULL, nothing, argument);
            HOST_CHECK(errno == 0);
        }
        for (int n = 0; n < 16; n++)
            pthread_join(threads[n], NULL);
    }
    return argument;
}
FRAME static void burn(void)
{
    host_arrive();
    while (!atomic_load_explicit(&host_ending, memory_order_relaxed))
        sink++;
}
/* With the thread-local memory of the thread that made it: it calls nothing that has any. */
FRAME static int raw_main(void *argument)
{
    (void)argument;
    HOST_CHECK(prctl(PR_SET_NAME, "raw") == 0);
    burn();
    NOT_A_TAIL_CALL();
    return 0;
}
FRAME static void *parent_main(void *argument)
{
    char *stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    HOST_CHECK(stack != MAP_FAILED);
    int flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM | CLONE_CHILD_CLEARTID;
    HOST_CHECK(clone(raw_main, stack + STACK_BYTES, flags, NULL, NULL, NULL, &raw_lives) > 0);
    while (atomic_load(&raw_lives) != 0)
        syscall(SYS_futex, &raw_lives, 0 /* FUTEX_WAIT */, 1, NULL, NULL, 0);
    return argument;
}

int main(void)
{
    host_begin();
    pthread_t parent = host_thread("parent", parent_main, NULL);
    host_wait_until_arrived(1);
    pthread_t brief = host_thread("brief", brief_main, NULL);
    host_say("ready");
    host_wait_for_end();
    pthread_join(brief, NULL);
    pthread_join(parent, NULL);
    return host_end();
}
