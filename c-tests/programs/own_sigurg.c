/* A host that has a use of its own for SIGURG, as Go's runtime has. The host must see every one of its signals. With
 * `late` as argument it installs its handler only when the runner says so, after the first recording may have used the
 * signal; later recordings must work all the same. The hazard: the agent takes signals of the host's, or the host's
 * handler gets signals of the agent's. */
// cflags: -O2
#include "host.h"

static atomic_long seen, from_elsewhere, raised;

static void on_urgent(int number, siginfo_t *info, void *context)
{
    (void)number;
    (void)context;
    atomic_fetch_add(&seen, 1);
    if (info->si_code != SI_TKILL)
        atomic_fetch_add(&from_elsewhere, 1);
}
static void install(void)
{
    struct sigaction action = {.sa_sigaction = on_urgent, .sa_flags = SA_SIGINFO | SA_RESTART};
    HOST_CHECK(sigaction(SIGURG, &action, NULL) == 0);
}
FRAME static void raise_signals(void)
{
    while (!atomic_load(&host_ending) || atomic_load(&raised) < 10000) {
        raise(SIGURG);
        atomic_fetch_add(&raised, 1);
    }
}
FRAME static void *raiser_main(void *argument)
{
    raise_signals();
    NOT_A_TAIL_CALL();
    return argument;
}

int main(int count, char **arguments)
{
    char line[64];
    bool late = count == 2 && strcmp(arguments[1], "late") == 0;
    pthread_t raiser;
    host_begin();
    if (late) {
        host_say("ready");
        HOST_CHECK(host_line(line, sizeof line) && strcmp(line, "install") == 0);
    }
    install();
    raiser = host_thread("raiser", raiser_main, NULL);
    while (atomic_load(&raised) < 100)
        NOT_A_TAIL_CALL();
    host_say(late ? "installed" : "ready");
    host_wait_for_end();
    pthread_join(raiser, NULL);
    host_say("raised %ld seen %ld", atomic_load(&raised), atomic_load(&seen));
    /* The agent's signal merges with one of the host's that is pending: none of the host's may be lost. */
    HOST_CHECK(atomic_load(&seen) - atomic_load(&raised) >= 0);
    /* A host that was here first must see no signal but its own. */
    HOST_CHECK(late || atomic_load(&from_elsewhere) == 0);
    return host_end();
}
