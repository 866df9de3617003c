/* Threads that all have the same alternate signal stack, as the workers of Varnish 7.1 do: for a handler that ends the
 * program, one is enough. The hazard: the agent's handler runs there in two threads at once, and each returns with the
 * registers of the other. So nobody may write there. */
// cflags: -O2
// record: samples=300&hz=1000
// expect: every sample of worker has stack worker_main;work
// record: samples=300&hz=1000&mode=cpu&source=preempt
// expect: every sample of worker has stack worker_main;work
#include "host.h"

enum { THREADS = 4, BYTES = 65536, PATTERN = 0x5a };

static unsigned char shared[BYTES] __attribute__((aligned(16)));
static volatile uint64_t sink;

FRAME static void work(void)
{
    host_arrive();
    while (!atomic_load(&host_ending))
        sink++;
}
FRAME static void *worker_main(void *argument)
{
    stack_t stack = {.ss_sp = shared, .ss_size = BYTES};
    HOST_CHECK(sigaltstack(&stack, NULL) == 0);
    work();
    NOT_A_TAIL_CALL();
    return argument;
}

int main(void)
{
    pthread_t workers[THREADS];
    host_begin();
    memset(shared, PATTERN, BYTES);
    for (int i = 0; i < THREADS; i++)
        workers[i] = host_thread("worker", worker_main, NULL);
    host_wait_until_arrived(THREADS);
    host_say("ready");
    host_wait_for_end();
    for (int i = 0; i < THREADS; i++)
        pthread_join(workers[i], NULL);
    for (int i = 0; i < BYTES; i++)
        HOST_CHECK(shared[i] == PATTERN);
    return host_end();
}
