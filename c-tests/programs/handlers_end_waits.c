/* A thread that waits for a flag which a signal handler of its own sets, in calls that end with EINTR when a handler
 * has run (select(2), epoll_wait(2), msgrcv(2), semop(2), poll(2)). The signals come while the thread sleeps. The
 * handler takes up to 0.1 ms, so that the agent's signal may come when it returns. The host must see each wait end. The
 * hazard: the agent's signal hides that the handler ran, and the thread waits for a signal that no thread sends. */
// cflags: -O2
// record: samples=20000&hz=4000
// expect: samples >= 20000
#include "host.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>

static atomic_bool over;
static atomic_ulong waiting, woken, last_turn;
static volatile sig_atomic_t came;
static volatile long takes_ns;
static pid_t waiter_tid;
static int epoll, messages, semaphore;

static long now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000 + now.tv_nsec;
}
static void note(int signal)
{
    for (long end = now_ns() + takes_ns; now_ns() < end;)
        ;
    came = signal;
}
FRAME static void wait_in_call(unsigned long turn)
{
    struct epoll_event event;
    struct {
        long type;
        char text[8];
    } message;
    struct sembuf take = {0, -1, 0};
    int result = turn % 5 == 0   ? select(0, NULL, NULL, NULL, NULL)
                 : turn % 5 == 1 ? epoll_wait(epoll, &event, 1, -1)
                 : turn % 5 == 2 ? (int)msgrcv(messages, &message, sizeof(message.text), 0, 0)
                 : turn % 5 == 3 ? semop(semaphore, &take, 1)
                                 : poll(NULL, 0, -1);
    HOST_CHECK(result == -1 && errno == EINTR);
}
static void *wait_for_handlers(void *unused)
{
    waiter_tid = gettid();
    host_arrive();
    for (unsigned long turn = 1;; turn++) {
        atomic_store(&waiting, turn);
        while (!came)
            wait_in_call(turn);
        came = 0;
        atomic_store(&woken, turn);
        if (atomic_load(&last_turn) == turn)
            return unused;
    }
}
/* Whether the waiter sleeps. */
static bool sleeps(void)
{
    char path[64], text[256];
    snprintf(path, sizeof(path), "/proc/self/task/%d/stat", waiter_tid);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = read(file, text, sizeof(text) - 1);
    close(file);
    text[length > 0 ? length : 0] = 0;
    const char *name_end = strrchr(text, ')');
    return name_end && name_end[1] == ' ' && name_end[2] == 'S';
}
static void pause_ns(long ns)
{
    struct timespec time = {0, ns};
    while (nanosleep(&time, &time) == -1 && errno == EINTR)
        ;
}
static void *send_signals(void *argument)
{
    pthread_t waiter = *(pthread_t *)argument;
    for (unsigned long turn = 1;; turn++) {
        takes_ns = turn % 3 * 50000;
        while (atomic_load(&waiting) != turn)
            pause_ns(20000);
        pause_ns(100000 + turn % 7 * 30000);
        while (!sleeps())
            pause_ns(20000);
        bool last = atomic_load(&over);
        if (last)
            atomic_store(&last_turn, turn);
        pthread_kill(waiter, SIGUSR1);
        for (int i = 0; i < 500000 && atomic_load(&woken) != turn; i++)
            pause_ns(20000);
        HOST_CHECK(atomic_load(&woken) == turn);
        if (last)
            return NULL;
    }
}

int main(void)
{
    host_begin();
    struct sigaction action = {.sa_handler = note};
    HOST_CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
    epoll = epoll_create1(EPOLL_CLOEXEC);
    messages = msgget(IPC_PRIVATE, 0600);
    semaphore = semget(IPC_PRIVATE, 1, 0600);
    HOST_CHECK(epoll >= 0 && messages >= 0 && semaphore >= 0);
    pthread_t waiter = host_thread("waiter", wait_for_handlers, NULL);
    host_wait_until_arrived(1);
    pthread_t sender = host_thread("sender", send_signals, &waiter);
    host_say("ready");
    host_wait_for_end();
    atomic_store(&over, true);
    pthread_join(sender, NULL);
    pthread_join(waiter, NULL);
    HOST_CHECK(msgctl(messages, IPC_RMID, NULL) == 0 && semctl(semaphore, 0, IPC_RMID) == 0);
    return host_end();
}
