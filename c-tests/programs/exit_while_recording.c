/* The ways a process ends, each while it is recorded: the status and the fact that it
 * ends are as without a profiler. The first argument says how. */
// cflags: -O2
#include "burner.h"
#include <execinfo.h>

static pthread_t main_thread;

static void *last_main(void *argument)
{
    pthread_join(main_thread, NULL);
    host_wait_for_end();
    return argument;
}
static void on_exit_say_ok(void)
{
    host_say("ok");
}

FRAME static void crash(void)
{
    volatile int *volatile nothing = NULL;
    *nothing = 1;
}
/* As crash reporters do: reads the crashed thread's frames for a while, then raises the signal again. */
static void report(int number)
{
    void *frames[32];
    for (int i = 0; i < 1000; i++)
        HOST_CHECK(backtrace(frames, 32) >= 4);
    host_say("ok");
    raise(number);
}

int main(int count, char **arguments)
{
    host_begin();
    HOST_CHECK(count == 2);
    const char *how = arguments[1];
    main_thread = pthread_self();
    burner_begin();
    atexit(on_exit_say_ok);
    if (strcmp(how, "last-thread") == 0) {
        /* The process ends, with status 0, when the last of these has returned. */
        host_thread("last", last_main, NULL);
        host_say("ready");
        pthread_exit(NULL);
    }
    host_say("ready");
    host_wait_for_end();
    if (strcmp(how, "exit") == 0)
        exit(7);
    if (strcmp(how, "_exit") == 0) {
        host_say("ok");
        _exit(8);
    }
    if (strcmp(how, "sigterm") == 0) {
        host_say("ok");
        kill(getpid(), SIGTERM);
        pause();
    }
    if (strcmp(how, "quick_exit") == 0) {
        host_say("ok");
        quick_exit(10);
    }
    if (strcmp(how, "abort") == 0) {
        host_say("ok");
        abort();
    }
    if (strcmp(how, "crash") == 0) {
        host_say("ok");
        crash();
    }
    if (strcmp(how, "reported") == 0) {
        stack_t stack = {.ss_sp = malloc(65536), .ss_size = 65536};
        struct sigaction action = {.sa_handler = report, .sa_flags = SA_ONSTACK | (int)SA_RESETHAND};
        HOST_CHECK(sigaltstack(&stack, NULL) == 0 && sigaction(SIGSEGV, &action, NULL) == 0);
        crash();
    }
    return 9;
}
