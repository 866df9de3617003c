/* Makes children: children COUNT. By turns: fork and exec, vfork and exec, posix_spawn, system(3)'s shell, fork alone (that one
   works and leaves by _exit). Each must end with the status it is told to. Says "ready"; a line on stdin makes COUNT of them and is answered with
   how many did not. */
#define _GNU_SOURCE
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
static char *own;

static int made(int number) {
    char want[16];
    int status = 0;
    pid_t child = -1;
    snprintf(want, sizeof want, "%d", number % 100);
    char *const arguments[] = {own, "exit", want, NULL};
    switch (number % 10) {
    case 0: case 1: case 2: case 3: case 4:
        if ((child = fork()) == 0) execv(own, arguments), _exit(127);
        break;
    case 5: case 6:
        if ((child = vfork()) == 0) execv(own, arguments), _exit(127);
        break;
    case 7:
        if (posix_spawn(&child, own, NULL, NULL, arguments, environ)) child = -1;
        break;
    case 8: {
        char line[32];
        snprintf(line, sizeof line, "exit %s", want);
        return WEXITSTATUS(system(line)) == number % 100;
    }
    default:
        if ((child = fork()) == 0) {
            char *memory = malloc(100000);
            memset(memory, 1, 100000);
            _exit(number % 100);
        }
    }
    return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == number % 100;
}

int main(int count, char **arguments) {
    char line[64];
    if (count > 2) return atoi(arguments[2]);
    own = realpath("/proc/self/exe", NULL);
    printf("ready\n"), fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        int wrong = 0;
        for (int i = 0; i < atoi(arguments[1]); i++) wrong += !made(i);
        printf("%d\n", wrong), fflush(stdout);
    }
    return 0;
}
