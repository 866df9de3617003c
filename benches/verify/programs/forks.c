/* Forks so many children that end at once, and waits for each. */
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int count, char **words)
{
    for (int left = count > 1 ? atoi(words[1]) : 100; left > 0; left--) {
        pid_t child = fork();
        if (child == 0)
            _exit(0);
        if (child < 0 || waitpid(child, NULL, 0) != child)
            return 1;
    }
    return 0;
}
