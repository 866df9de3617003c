/* A ring of io_uring(7), without a library. */
#ifndef SWIPR_C_TESTS_RING_H
#define SWIPR_C_TESTS_RING_H

#include "host.h"
#include <linux/io_uring.h>
#include <sys/mman.h>

struct ring {
    int fd;
    unsigned *tail, *mask, *array, *done_head, *done_tail, *done_mask;
    struct io_uring_sqe *entries;
    struct io_uring_cqe *done;
};

/* False: there are no rings here. */
static bool begin_ring(struct ring *ring, unsigned entries, unsigned flags)
{
    struct io_uring_params params = {.flags = flags, .sq_thread_idle = 60000};
    ring->fd = (int)syscall(SYS_io_uring_setup, entries, &params);
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

static void add_entry(struct ring *ring, struct io_uring_sqe entry)
{
    unsigned tail = *ring->tail, at = tail & *ring->mask;
    ring->entries[at] = entry;
    ring->array[at] = at;
    __atomic_store_n(ring->tail, tail + 1, __ATOMIC_RELEASE);
}

static bool has_result(struct ring *ring)
{
    return __atomic_load_n(ring->done_tail, __ATOMIC_ACQUIRE) != *ring->done_head;
}

static int take_result(struct ring *ring)
{
    int result = ring->done[*ring->done_head & *ring->done_mask].res;
    __atomic_store_n(ring->done_head, *ring->done_head + 1, __ATOMIC_RELEASE);
    return result;
}

#endif
