/* JIT code without frame pointers whose unwind information is registered with the C++ runtime, as just-in-time
 * compilers do: a whole section, one description alone, and with room that the program lends. The frame pointer holds
 * zero there. The recording must show complete stacks. The host must see a deregistration return what it returns
 * without the agent. */
// cflags: -O2 -fomit-frame-pointer
// libs: -lgcc_s
// record: samples=500&hz=500
// expect: every sample of section has stack section_main;burn
// expect: every sample of section is complete
// expect: every sample of single has stack single_main;burn
// expect: every sample of single is complete
// expect: every sample of lent has stack lent_main;wait_for_answer
// expect: every sample of lent is complete
#include "jit_code.h"

static volatile uint64_t sink;
static int ends[2];
static struct made *made;
static void *room[16];

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
    made = new_pieces(3);
    for (int n = 0; n < 3; n++)
        make(&made[n], 32);
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
