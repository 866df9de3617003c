/* LD_PRELOAD it: the program has a second thread, which sleeps. */
#include <pthread.h>
#include <unistd.h>

static void *sleeping(void *nothing)
{
    for (;;)
        pause();
    return nothing;
}

__attribute__((constructor)) static void start(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, sleeping, NULL);
}
