/* Threads that the kernel makes for io_uring(7). They are listed with the process's own threads, and have no stack
 * in user space. One polls for requests and runs all the time. Some stay in open(2) of a FIFO until it has a writer.
 * The host must see its requests complete. The hazard: the agent signals such a thread, or copies a stack that is
 * not there. */
// cflags: -O2
// record: samples=500&hz=500
// expect: every sample of burner has stack burner_main;work
#include "burner.h"
#include "ring.h"
#include <fcntl.h>
#include <sys/stat.h>

#define OPENS 4

static void begin_open(struct ring *ring, const char *path)
{
    /* In a thread of the kernel's from the first. */
    add_entry(ring, (struct io_uring_sqe){
        .opcode = IORING_OP_OPENAT, .flags = IOSQE_ASYNC, .fd = AT_FDCWD, .addr = (uint64_t)(uintptr_t)path, .open_flags = O_RDONLY});
}
static int end_open(struct ring *ring)
{
    const struct timespec moment = {0, 100000};
    while (!has_result(ring))
        nanosleep(&moment, NULL);
    return take_result(ring);
}

static bool has_thread(const char *name)
{
    bool found = false;
    char path[64], comm[32];
    DIR *tasks = opendir("/proc/self/task");
    HOST_CHECK(tasks != NULL);
    for (struct dirent *task; (task = readdir(tasks)) != NULL;) {
        snprintf(path, sizeof path, "/proc/self/task/%.20s/comm", task->d_name);
        FILE *file = fopen(path, "re");
        found |= file != NULL && fgets(comm, sizeof comm, file) != NULL && strncmp(comm, name, strlen(name)) == 0;
        if (file != NULL)
            fclose(file);
    }
    closedir(tasks);
    return found;
}

int main(void)
{
    struct ring ring;
    char path[] = "/tmp/kernels_workers-XXXXXX";
    const struct timespec moment = {0, 1000000};
    host_begin();
    pthread_t burner = burner_begin();
    HOST_CHECK(mkdtemp(path) != NULL && chdir(path) == 0 && mkfifo("fifo", 0600) == 0);
    bool has_ring = begin_ring(&ring, OPENS, IORING_SETUP_SQPOLL);
    for (int i = 0; has_ring && i < OPENS; i++)
        begin_open(&ring, "fifo");
    while (has_ring && !(has_thread("iou-sqp") && has_thread("iou-wrk"))) {
        /* The one that polls may have gone to sleep before there was anything to do. */
        syscall(SYS_io_uring_enter, ring.fd, 0, 0, IORING_ENTER_SQ_WAKEUP, NULL, 0);
        nanosleep(&moment, NULL);
    }
    host_say("ready");
    host_wait_for_end();
    pthread_join(burner, NULL);
    int writer = has_ring ? open("fifo", O_WRONLY | O_CLOEXEC) : -1;
    for (int i = 0; has_ring && i < OPENS; i++)
        HOST_CHECK(end_open(&ring) >= 0);
    HOST_CHECK(close(writer) == 0 || !has_ring);
    HOST_CHECK(unlink("fifo") == 0 && rmdir(path) == 0);
    return host_end();
}
