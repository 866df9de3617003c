/* A thread that waits in io_uring_enter(2) for data, which the kernel copies there, in the work that it does before it
 * returns. The hazard: the kernel raises the signals of timers there, too, and the wait ends with EINTR. */
// cflags: -O2
// record: seconds=2&hz=1000
// expect: samples >= 100
#include "ring.h"
#include <sys/socket.h>

enum { BYTES = 8 << 20, PART = 64 << 10 };

static int ends[2];

FRAME static void *sender_main(void *argument)
{
    char *part = calloc(1, PART);
    while (!atomic_load(&host_ending))
        HOST_CHECK(send(ends[1], part, PART, MSG_NOSIGNAL) > 0);
    shutdown(ends[1], SHUT_WR);
    free(part);
    return argument;
}

FRAME static void *receiver_main(void *argument)
{
    struct ring *ring = argument;
    char *data = malloc(BYTES);
    for (int result = 1; result > 0; result = take_result(ring)) {
        add_entry(ring, (struct io_uring_sqe){
            .opcode = IORING_OP_RECV, .fd = ends[0], .addr = (uint64_t)(uintptr_t)data, .len = BYTES, .msg_flags = MSG_WAITALL});
        HOST_CHECK(syscall(SYS_io_uring_enter, ring->fd, 1, 0, 0, NULL, 0) == 1);
        while (!has_result(ring))
            HOST_CHECK(syscall(SYS_io_uring_enter, ring->fd, 0, 1, IORING_ENTER_GETEVENTS, NULL, 0) >= 0);
    }
    free(data);
    return NULL;
}

int main(void)
{
    host_begin();
    struct ring ring;
    HOST_CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    bool has_ring = begin_ring(&ring, 4, 0);
    pthread_t threads[2];
    if (has_ring) {
        threads[0] = host_thread("receiver", receiver_main, &ring);
        threads[1] = host_thread("sender", sender_main, NULL);
    }
    host_say("ready");
    host_wait_for_end();
    for (int each = 0; has_ring && each < 2; each++)
        pthread_join(threads[each], NULL);
    return host_end();
}
