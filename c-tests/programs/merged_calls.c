/* Two system calls that share one `syscall` instruction, as gcc -Os merges them: a wait with a mask that lets a signal in which is blocked
 * elsewhere. The host must get that signal each time, and end each wait by it. The hazard: a signal of ours keeps the host's out. */
// cflags: -O2
// record: seconds=3&hz=4000
// expect: samples >= 1000
#include "host.h"

#include <sys/epoll.h>

#if defined(__x86_64__)
static volatile uint64_t sink;
static atomic_long caught;

/* epoll_pwait (281) if `masked`, else epoll_wait (232). */
FRAME static long wait_for(int epoll, struct epoll_event *event, const sigset_t *mask, int masked)
{
    long result = 0;
    register const sigset_t *fifth __asm__("r8") = mask;
    register long time __asm__("r10") = -1, size __asm__("r9") = 8;
    __asm__ volatile("testl %[masked], %[masked]\n\t"
                     "movl $281, %%eax\n\t"
                     "jne 1f\n\t"
                     "movl $232, %%eax\n"
                     "1: syscall"
                     : "+&a"(result)
                     : [masked] "b"(masked), "D"((long)epoll), "S"(event), "d"(1L), "r"(time), "r"(fifth), "r"(size)
                     : "rcx", "r11", "memory", "cc");
    return result;
}
static void catch(int number)
{
    (void)number;
    atomic_fetch_add(&caught, 1);
}
FRAME static void compute(void)
{
    for (int i = 0; i < 5000; i++)
        sink++;
}
static void *waiter_main(void *argument)
{
    sigset_t mask;
    struct epoll_event event;
    int epoll = epoll_create1(0);
    HOST_CHECK(epoll >= 0 && pthread_sigmask(SIG_SETMASK, NULL, &mask) == 0);
    sigdelset(&mask, SIGUSR1);
    host_arrive();
    while (!atomic_load(&host_ending)) {
        compute();
        wait_for(epoll, &event, &mask, 1);
    }
    return argument;
}
static void *kicks(void *argument)
{
    pthread_t waiter = *(pthread_t *)argument;
    const struct timespec moment = {0, 150000}, longer = {0, 1000000};
    host_wait_until_arrived(1);
    while (!atomic_load(&host_ending)) {
        long before = atomic_load(&caught);
        nanosleep(&moment, NULL);
        HOST_CHECK(pthread_kill(waiter, SIGUSR1) == 0);
        for (int tries = 0; atomic_load(&caught) == before && tries < 5000; tries++)
            nanosleep(&longer, NULL);
        HOST_CHECK(atomic_load(&caught) != before);
    }
    pthread_kill(waiter, SIGUSR1);
    return argument;
}

int main(void)
{
    struct sigaction action = {.sa_handler = catch};
    sigset_t blocked;
    host_begin();
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR1);
    HOST_CHECK(sigaction(SIGUSR1, &action, NULL) == 0 && pthread_sigmask(SIG_BLOCK, &blocked, NULL) == 0);
    pthread_t waiter = host_thread("waiter", waiter_main, NULL);
    pthread_t kicker = host_thread("kicks", kicks, &waiter);
    host_say("ready");
    host_wait_for_end();
    pthread_join(kicker, NULL);
    pthread_join(waiter, NULL);
    return host_end();
}
#else
int main(void)
{
    host_begin();
    host_say("ready");
    host_wait_for_end();
    return host_end();
}
#endif
