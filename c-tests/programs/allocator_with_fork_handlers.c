/* An allocator in the executable that holds its lock while the program forks, by fork handlers of its own
 * (pthread_atfork(3)), as jemalloc, tcmalloc and Chromium's do. The host must see each fork return, in the parent and
 * in the child. The hazard: a fork handler of the agent's that allocates while the lock is held waits for ever: in the
 * child, where the lock's holder is the thread that waits, and in the parent before the fork. (Seen with
 * chrome_crashpad_handler, whose child never came back from fork.) */
// cflags: -O2
// record: samples=200&hz=200
// expect: thread forker has stack forker_main;fork_and_wait
// expect: samples >= 100
#include "host.h"
#include <sched.h>
#include <sys/wait.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *memory, size_t size);
void *__libc_memalign(size_t alignment, size_t size);
void __libc_free(void *memory);

static atomic_bool locked;

static void lock(void)
{
    while (atomic_exchange(&locked, true))
        sched_yield();
}
static void unlock(void)
{
    atomic_store(&locked, false);
}
#define WHILE_LOCKED(type, call)                                                   \
    lock();                                                                        \
    type result = call;                                                            \
    unlock();                                                                      \
    return result

void *malloc(size_t size)
{
    WHILE_LOCKED(void *, __libc_malloc(size));
}
void *calloc(size_t count, size_t size)
{
    WHILE_LOCKED(void *, __libc_calloc(count, size));
}
void *realloc(void *memory, size_t size)
{
    WHILE_LOCKED(void *, __libc_realloc(memory, size));
}
void *memalign(size_t alignment, size_t size)
{
    WHILE_LOCKED(void *, __libc_memalign(alignment, size));
}
void *aligned_alloc(size_t alignment, size_t size)
{
    return memalign(alignment, size);
}
void free(void *memory)
{
    lock();
    __libc_free(memory);
    unlock();
}

/* A child that does not end within ten seconds hangs. */
FRAME static void fork_and_wait(void)
{
    pid_t child = fork();
    HOST_CHECK(child >= 0);
    if (child == 0) {
        free(malloc(1000));
        _exit(7);
    }
    int status = 0;
    for (int i = 0; i < 10000; i++) {
        pid_t ended = waitpid(child, &status, WNOHANG);
        HOST_CHECK(ended >= 0);
        if (ended == child) {
            HOST_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
            return;
        }
        usleep(1000);
    }
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    HOST_CHECK(!"a child came back from fork");
}
FRAME static void *forker_main(void *argument)
{
    host_arrive();
    while (!atomic_load(&host_ending))
        fork_and_wait();
    return argument;
}

int main(void)
{
    host_begin();
    HOST_CHECK(pthread_atfork(lock, unlock, unlock) == 0);
    fork_and_wait();
    pthread_t forker = host_thread("forker", forker_main, NULL);
    while (atomic_load(&host_arrived) < 1)
        sched_yield();
    host_say("ready");
    host_wait_for_end();
    pthread_join(forker, NULL);
    return host_end();
}
