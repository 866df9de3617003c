/* Children by vfork(2) that burn CPU in the parent's memory before they exec, while the parent is recorded. The host
 * must see the thread that waits for them stay in vfork(2) until they exec, lose no signal of its own, and stay
 * cancellable when one ends by _exit(2). The hazard: the agent signals that thread, or runs in a child that uses the
 * thread's memory. */
// cflags: -O2 -fomit-frame-pointer
// record: samples=500&hz=500
// expect: every sample of parent has stack parent_main;child_after_child
// expect: every sample of parent is complete
// expect: every sample of burner has stack burner_main;burn
// expect: every sample of burner is complete
#include "host.h"
#include <sys/wait.h>

static volatile uint64_t sink;
static atomic_int children;
static volatile sig_atomic_t own_signals;

static void on_own_signal(int number)
{
    (void)number;
    own_signals++;
}
FRAME static void burn(void)
{
    host_arrive();
    while (!atomic_load_explicit(&host_ending, memory_order_relaxed))
        sink++;
}
FRAME static void *burner_main(void *argument)
{
    burn();
    NOT_A_TAIL_CALL();
    return argument;
}
FRAME static void child_after_child(void)
{
    char *const arguments[] = {"true", NULL};
    char *const environment[] = {NULL};
    volatile sig_atomic_t sent = 0;
    if (vfork() == 0)
        _exit(0);
    HOST_CHECK(wait(NULL) > 0);
    int cancel_state;
    HOST_CHECK(pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &cancel_state) == 0 && cancel_state == PTHREAD_CANCEL_ENABLE);
    while (!atomic_load(&host_ending)) {
        pid_t child = vfork();
        if (child == 0) {
            /* The parent's memory: only what the child itself needs is written. */
            for (volatile uint64_t rounds = 0; rounds < 5000000; rounds++)
                ;
            execve("/bin/true", arguments, environment);
            _exit(127);
        }
        HOST_CHECK(child > 0);
        int status;
        HOST_CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
        pthread_kill(pthread_self(), SIGUSR1);
        HOST_CHECK(own_signals == (sent = sent + 1));
        if (atomic_fetch_add(&children, 1) == 0)
            host_arrive();
    }
}
FRAME static void *parent_main(void *argument)
{
    child_after_child();
    NOT_A_TAIL_CALL();
    return argument;
}

int main(void)
{
    struct sigaction action = {.sa_handler = on_own_signal};
    host_begin();
    HOST_CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
    pthread_t burner = host_thread("burner", burner_main, NULL);
    pthread_t parent = host_thread("parent", parent_main, NULL);
    host_wait_until_arrived(2);
    host_say("ready");
    host_wait_for_end();
    pthread_join(parent, NULL);
    pthread_join(burner, NULL);
    return host_end();
}
