/* A thread whose system calls raise SIGSYS instead of entering the kernel, for as long as a byte of the program's says
 * so (prctl(2), PR_SET_SYSCALL_USER_DISPATCH). Emulators of other systems do this. The thread computes while it is
 * recorded. The host must see a SIGSYS for its own calls only. The hazard: a signal handler that is not the thread's
 * own cannot even return there, because its return is such a call. */
// cflags: -O2
// record: samples=1000&hz=1000
// expect: every sample of burner has stack burner_main;work
#include "burner.h"
#include <sys/prctl.h>

#ifndef PR_SET_SYSCALL_USER_DISPATCH
#define PR_SET_SYSCALL_USER_DISPATCH 59
#endif

static volatile char is_foreign;
static atomic_long own_calls, foreign_calls;

#ifdef __x86_64__
/* As the C library's, but with the return from the handler allowed. */
static void on_foreign_call(int number, siginfo_t *info, void *context)
{
    (void)number, (void)context;
    is_foreign = 0;
    atomic_fetch_add(info->si_syscall == SYS_getppid ? &own_calls : &foreign_calls, 1);
}
FRAME static void compute(void)
{
    for (int i = 0; i < 200000; i++)
        sink++;
}
#endif
FRAME static void *emulator_main(void *argument)
{
#ifdef __x86_64__
    struct sigaction action = {.sa_sigaction = on_foreign_call, .sa_flags = SA_SIGINFO};
    HOST_CHECK(sigaction(SIGSYS, &action, NULL) == 0);
    HOST_CHECK(prctl(PR_SET_SYSCALL_USER_DISPATCH, 1, 0, 0, &is_foreign) == 0 || errno == EINVAL);
    host_arrive();
    while (!atomic_load(&host_ending)) {
        long before = atomic_load(&own_calls);
        is_foreign = 1;
        compute();
        __asm__ volatile("syscall" : : "a"((long)SYS_getppid) : "rcx", "r11", "memory");
        /* The handler has allowed them again. */
        HOST_CHECK(is_foreign == 0 || errno == EINVAL);
        HOST_CHECK(atomic_load(&own_calls) == before + 1 || errno == EINVAL);
    }
    prctl(PR_SET_SYSCALL_USER_DISPATCH, 0, 0, 0, 0);
    HOST_CHECK(atomic_load(&foreign_calls) == 0);
#else
    host_arrive();
#endif
    return argument;
}

int main(void)
{
    return burner_beside("emulator", emulator_main);
}
