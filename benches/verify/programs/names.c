/* Threads with names that break readers of perf's text, some asleep, some busy; until ended. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sys/prctl.h>
#include <unistd.h>

/* At most 15 bytes each. */
static const char *const names[] = {
    "a;b", "x 1/2 [000] 1.5", "#", "# comment", "", "   ", " lead", "trail ", ")(", "(anonymous", "x: y: 1:",
    "1/2 3.4: 5 e:", "tab\tname", "line\nline", "\xff\xfe\x80name", "\xc3", "\xe2\x80\xa8sep", "{\"json\":1}", "[000]",
    "0x1234", "%s%n%x", "<script>", "a\rb", "->", "1", "swapper", "\xe2\x80\xaertl", "cpu-clock:", "\x01\x02", "\"quoted\"",
};

static volatile unsigned long sink;

static void *lives(void *argument) {
    unsigned long number = (unsigned long)argument;
    prctl(PR_SET_NAME, names[number]);
    for (;;) {
        for (int i = 0; i < 20000; i++) sink += (unsigned long)i;
        usleep(number % 3 ? 20000 : 500);
    }
}

int main(void) {
    pthread_t thread;
    for (unsigned long i = 1; i < sizeof names / sizeof *names; i++)
        if (pthread_create(&thread, NULL, lives, (void *)i)) return 2;
    lives(NULL);
}
