/* A child of a process that has registered the unwind information of JIT code. The child runs that code as well. The
 * recording of the child must show complete stacks: what the parent registered holds in the child, too. */
// cflags: -O2 -fomit-frame-pointer
// libs: -lgcc_s
#include "jit_code.h"
#include <sys/wait.h>

static volatile uint64_t sink;
static struct made *made;
/* The parent reads from it when the child's thread burns. */
static int burning[2];

FRAME static void burn(void)
{
    HOST_CHECK(write(burning[1], "", 1) == 1);
    while (!atomic_load_explicit(&host_ending, memory_order_relaxed))
        sink++;
}
FRAME static void *child_main(void *argument)
{
    call(made, burn);
    return argument;
}

int main(void)
{
    host_begin();
    made = new_pieces(1);
    make(made, 32);
    __register_frame(made->frames);
    HOST_CHECK(pipe(burning) == 0);
    pid_t child = fork();
    HOST_CHECK(child >= 0);
    if (child == 0) {
        host_begin();
        host_thread("child", child_main, NULL);
        for (;;)
            pause();
    }
    char byte;
    HOST_CHECK(read(burning[0], &byte, 1) == 1);
    host_say("child %d", (int)child);
    host_say("ready");
    host_wait_for_end();
    kill(child, SIGKILL);
    HOST_CHECK(waitpid(child, NULL, 0) == child);
    __deregister_frame(made->frames);
    return host_end();
}
