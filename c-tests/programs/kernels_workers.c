/* Threads that the kernel makes for io_uring(7). They are listed with the process's own threads, and have no stack
 * in user space. One polls for requests and runs all the time. Some stay in open(2) of a FIFO until it has a writer.
 * The host must see its requests complete. The hazard: the agent signals such a thread, or copies a stack that is
 * not there. */
// cflags: -O2
// record: samples=500&hz=500
// expect: every sample of burner has stack burner_main;work
#include "burner.h"
#include <fcntl.h>
#include <linux/io_uring.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define OPENS 4

struct ring {
    int fd;
    unsigned *tail, *mask, *array, *done_head, *done_tail, *done_mask;
    struct io_uring_sqe *entries;
    struct io_uring_cqe *done;
};

static bool begin_ring(struct ring *ring)
{
    struct io_uring_params params = {.flags = IORING_SETUP_SQPOLL, .sq_thread_idle = 60000};
    ring->fd = (int)syscall(SYS_io_uring_setup, OPENS, &params);
    if (ring->fd < 0)
        return false;
    size_t bytes = params.sq_off.array + params.sq_entries * sizeof(unsigned);
    size_t done_bytes = params.cq_off.cqes + params.cq_entries * sizeof(struct io_uring_cqe);
    char *queue = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, ring->fd, IORING_OFF_SQ_RING);
    char *done = mmap(NULL, done_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, ring->fd, IORING_OFF_CQ_RING);
    ring->entries = mmap(NULL, params.sq_entries * sizeof *ring->entries, PROT_READ | PROT_WRITE, MAP_SHARED, ring->fd, IORING_OFF_SQES);
    HOST_CHECK(queue != MAP_FAILED && done != MAP_FAILED && ring->entries != MAP_FAILED);
    ring->tail = (unsigned *)(queue + params.sq_off.tail);
    ring->mask = (unsigned *)(queue + params.sq_off.ring_mask);
    ring->array = (unsigned *)(queue + params.sq_off.array);
    ring->done_head = (unsigned *)(done + params.cq_off.head);
    ring->done_tail = (unsigned *)(done + params.cq_off.tail);
    ring->done_mask = (unsigned *)(done + params.cq_off.ring_mask);
    ring->done = (struct io_uring_cqe *)(done + params.cq_off.cqes);
    return true;
}
static void begin_open(struct ring *ring, const char *path)
{
    unsigned tail = *ring->tail, at = tail & *ring->mask;
    ring->entries[at] = (struct io_uring_sqe){
        /* In a thread of the kernel's from the first. */
        .opcode = IORING_OP_OPENAT, .flags = IOSQE_ASYNC, .fd = AT_FDCWD, .addr = (uint64_t)(uintptr_t)path, .open_flags = O_RDONLY};
    ring->array[at] = at;
    __atomic_store_n(ring->tail, tail + 1, __ATOMIC_RELEASE);
}
static int end_open(struct ring *ring)
{
    const struct timespec moment = {0, 100000};
    while (__atomic_load_n(ring->done_tail, __ATOMIC_ACQUIRE) == *ring->done_head)
        nanosleep(&moment, NULL);
    int result = ring->done[*ring->done_head & *ring->done_mask].res;
    __atomic_store_n(ring->done_head, *ring->done_head + 1, __ATOMIC_RELEASE);
    return result;
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
    bool has_ring = begin_ring(&ring);
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
