/* Started with 0, 1 and 2 closed (the runner's pipes are 3 and 4): what is opened first gets them, as without a profiler,
 * and nothing is ever written to them. */
// cflags: -O2
#include "burner.h"
#include <fcntl.h>
#include <sys/stat.h>

int main(int count, char **arguments)
{
    host_begin();
    HOST_CHECK(count == 2);
    int files[3];
    for (int i = 0; i < 3; i++)
        files[i] = open(arguments[1], O_CREAT | O_RDWR | O_APPEND, 0600);
    bool in_order = files[0] == 0 && files[1] == 1 && files[2] == 2;
    pthread_t burner = burner_begin();
    HOST_CHECK(write(4, "ready\n", 6) == 6);
    char byte;
    while (read(3, &byte, 1) > 0)
        NOT_A_TAIL_CALL();
    atomic_store(&host_ending, true);
    pthread_join(burner, NULL);
    struct stat file;
    HOST_CHECK(fstat(files[0], &file) == 0);
    bool is_empty = file.st_size == 0;
    HOST_CHECK(dup2(4, STDOUT_FILENO) == STDOUT_FILENO);
    HOST_CHECK(in_order && is_empty);
    return host_end();
}
