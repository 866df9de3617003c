/* Three functions that use the same CPU time: one forks, which copies the page tables of 100 MB, one makes a system call that takes as
 * long, one computes. Signals come at the ends of such system calls, and of forks. Each function has its third all the same. */
// cflags: -O2
// record: seconds=12&hz=100&mode=cpu
// expect: share of caller with stack caller_main;fork_large >= 0.2
// expect: share of caller with stack caller_main;read_zeros >= 0.2
// expect: share of caller with stack caller_main;compute >= 0.2
#include "host.h"
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/wait.h>

#define LARGE ((size_t)100 << 20)
#define PART ((size_t)256 << 10)
#define PARTS 1024

static struct iovec parts[PARTS];
static int zeros;
static volatile uint64_t sink;

FRAME static void fork_large(void)
{
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    HOST_CHECK(child > 0 && waitpid(child, NULL, 0) == child);
}
FRAME static void read_zeros(int count)
{
    HOST_CHECK(readv(zeros, parts, count) == (ssize_t)(count * PART));
    NOT_A_TAIL_CALL();
}
FRAME static void compute(uint64_t until_ns)
{
    while (host_thread_cpu_ns() < until_ns)
        for (int i = 0; i < 10000; i++)
            sink += (uint64_t)i;
}
FRAME static void *caller_main(void *argument)
{
    host_arrive();
    int count = PARTS / 8;
    while (!atomic_load(&host_ending)) {
        uint64_t start = host_thread_cpu_ns();
        fork_large();
        uint64_t forked = host_thread_cpu_ns();
        read_zeros(count);
        uint64_t end = host_thread_cpu_ns(), read_ns = end - forked, wanted_ns = forked - start;
        count = (int)((uint64_t)count * wanted_ns / (read_ns + 1)) + 1;
        count = count > PARTS ? PARTS : count;
        compute(end + (end - start) / 2);
    }
    return argument;
}
int main(void)
{
    host_begin();
    char *large = mmap(NULL, LARGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    HOST_CHECK(large != MAP_FAILED);
    madvise(large, LARGE, MADV_NOHUGEPAGE);
    memset(large, 1, LARGE);
    zeros = open("/dev/zero", O_RDONLY);
    char *buffer = malloc(PART);
    HOST_CHECK(zeros >= 0 && buffer != NULL);
    for (int i = 0; i < PARTS; i++)
        parts[i] = (struct iovec){buffer, PART};
    pthread_t caller = host_thread("caller", caller_main, NULL);
    host_wait_until_arrived(1);
    host_say("ready");
    host_wait_for_end();
    HOST_CHECK(pthread_join(caller, NULL) == 0);
    return host_end();
}
