/* Threads that compute and go to sleep all the time. They wait in calls that wait up to a point in time, or whose
 * remaining time the kernel writes down. They handle no signal, so the host must see none of these calls fail with
 * EINTR. The hazard: the agent's signal finds a thread in such a call, and the kernel ends the call. (Seen with perl,
 * whose select came back early and whose sleep was cut short.) */
// cflags: -O2
// record: samples=2000&hz=2000
// expect: samples >= 2000
// record: samples=4000&hz=2000&mode=cpu
// expect: samples >= 30
#include "host.h"

#include <poll.h>
#include <sched.h>
#include <semaphore.h>
#include <sys/select.h>

#define WAIT_NS 60000

static volatile uint64_t sink;

FRAME static void compute(void)
{
    for (int i = 0; i < 5000; i++)
        sink++;
}
static struct timespec in_a_moment(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    time.tv_nsec += WAIT_NS;
    if (time.tv_nsec >= 1000000000) {
        time.tv_sec++;
        time.tv_nsec -= 1000000000;
    }
    return time;
}
FRAME static void *selects(void *argument)
{
    host_arrive();
    while (!atomic_load(&host_ending)) {
        struct timeval time = {0, WAIT_NS / 1000};
        const struct timespec same = {0, WAIT_NS};
        compute();
        HOST_CHECK(select(0, NULL, NULL, NULL, &time) == 0);
        compute();
        HOST_CHECK(pselect(0, NULL, NULL, NULL, &same, NULL) == 0);
        compute();
        HOST_CHECK(ppoll(NULL, 0, &same, NULL) == 0);
    }
    return argument;
}
FRAME static void *sleeps(void *argument)
{
    sem_t nothing;
    HOST_CHECK(sem_init(&nothing, 0, 0) == 0);
    host_arrive();
    while (!atomic_load(&host_ending)) {
        compute();
        struct timespec until = in_a_moment(CLOCK_MONOTONIC);
        HOST_CHECK(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == 0);
        compute();
        until = in_a_moment(CLOCK_REALTIME);
        HOST_CHECK(sem_timedwait(&nothing, &until) == -1 && errno == ETIMEDOUT);
    }
    return argument;
}

int main(void)
{
    pthread_t threads[4];
    host_begin();
    for (int i = 0; i < 4; i++)
        threads[i] = host_thread(i % 2 ? "selects" : "sleeps", i % 2 ? selects : sleeps, NULL);
    while (atomic_load(&host_arrived) < 4)
        sched_yield();
    host_say("ready");
    host_wait_for_end();
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    return host_end();
}
