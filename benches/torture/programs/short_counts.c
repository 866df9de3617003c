/* A thread for every call that moves much, to or from a partner that is slow: each makes its call again and again,
   computes a little in between, and counts how often it came back with less than all, or with EINTR. Arguments and
   answers are those of eintr.c. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>
static long work_us;
static long now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000 + t.tv_nsec / 1000;
}
static void compute(long us)
{
    for (long end = now_us() + us; now_us() < end;) {
    }
}
struct call {
    const char *name;
    long size;
    int kind;
    long calls, cut, others;
    int fd;
};
static void *reader(void *a)
{
    int fd = (int)(long)a;
    static __thread char room[30000];
    int n = 0;
    while (read(fd, room, sizeof room) > 0) {
        if (++n % 8 == 0)
            usleep(200);
    }
    return NULL;
}
static void *feeder(void *a)
{
    int fd = (int)(long)a;
    static __thread char room[30000];
    while (send(fd, room, sizeof room, 0) > 0 || errno == EINTR) {
    }
    return NULL;
}
static void tcp(int fds[2])
{
    struct sockaddr_in p = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t l = sizeof p;
    int s = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(s, (void *)&p, sizeof p) || listen(s, 1) || getsockname(s, (void *)&p, &l))
        abort();
    fds[0] = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(fds[0], (void *)&p, l))
        abort();
    fds[1] = accept(s, NULL, NULL);
    close(s);
}
static struct call calls[] = {
    {"write,pipe,64K", 65536, 0},      {"write,pipe,256K", 262144, 0},       {"write,pipe,1M", 1 << 20, 0},
    {"writev,pipe,1M", 1 << 20, 6},    {"send,unix,1M", 1 << 20, 1},         {"send,tcp,1M", 1 << 20, 2},
    {"write,tcp,256K", 262144, 7},     {"recv,unix,WAITALL,1M", 1 << 20, 3}, {"recv,tcp,WAITALL,1M", 1 << 20, 8},
    {"read,/dev/zero,4M", 4 << 20, 4}, {"getrandom,1M", 1 << 20, 5},
};
static void *makes(void *a)
{
    struct call *c = a;
    char *buf = calloc(1, c->size);
    int fds[2] = {-1, -1};
    pthread_t t;
    switch (c->kind) {
    case 0:
    case 6:
        if (pipe(fds))
            abort();
        pthread_create(&t, NULL, reader, (void *)(long)fds[0]);
        c->fd = fds[1];
        break;
    case 1:
        if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds))
            abort();
        pthread_create(&t, NULL, reader, (void *)(long)fds[0]);
        c->fd = fds[1];
        break;
    case 2:
    case 7:
        tcp(fds);
        pthread_create(&t, NULL, reader, (void *)(long)fds[0]);
        c->fd = fds[1];
        break;
    case 3:
        if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds))
            abort();
        pthread_create(&t, NULL, feeder, (void *)(long)fds[0]);
        c->fd = fds[1];
        break;
    case 8:
        tcp(fds);
        pthread_create(&t, NULL, feeder, (void *)(long)fds[0]);
        c->fd = fds[1];
        break;
    case 4:
        c->fd = open("/dev/zero", O_RDONLY);
        break;
    }
    for (;;) {
        compute(work_us);
        ssize_t n = 0;
        struct iovec v[2] = {{buf, c->size / 2}, {buf + c->size / 2, c->size / 2}};
        switch (c->kind) {
        case 0:
        case 7:
            n = write(c->fd, buf, c->size);
            break;
        case 6:
            n = writev(c->fd, v, 2);
            break;
        case 1:
        case 2:
            n = send(c->fd, buf, c->size, 0);
            break;
        case 3:
        case 8:
            n = recv(c->fd, buf, c->size, MSG_WAITALL);
            break;
        case 4:
            n = read(c->fd, buf, c->size);
            break;
        case 5:
            n = getrandom(buf, c->size, 0);
            break;
        }
        int e = errno;
        if (n < 0 && e == EINTR)
            __atomic_add_fetch(&c->cut, 1, __ATOMIC_RELAXED);
        else if (n < 0)
            __atomic_add_fetch(&c->others, 1, __ATOMIC_RELAXED);
        else if (n < c->size)
            __atomic_add_fetch(&c->cut, 1, __ATOMIC_RELAXED);
        __atomic_add_fetch(&c->calls, 1, __ATOMIC_RELAXED);
        if (c->kind == 4 || c->kind == 5)
            usleep(2000);
    }
    return NULL;
}
static void nothing(int s)
{
    (void)s;
}
static void handle(int n)
{
    struct sigaction a = {.sa_handler = nothing, .sa_flags = SA_RESTART};
    sigaction(n, &a, NULL);
}
int main(int count, char **arg)
{
    char line[64];
    work_us = count > 1 ? atol(arg[1]) : 50;
    if (count > 2 && atoi(arg[2]))
        handle(SIGTERM), handle(SIGHUP);
    for (unsigned i = 0; i < sizeof calls / sizeof *calls; i++) {
        pthread_t t;
        if (pthread_create(&t, NULL, makes, &calls[i]))
            return 2;
    }
    printf("ready\n"), fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        for (unsigned i = 0; i < sizeof calls / sizeof *calls; i++)
            printf("%s %ld %ld %ld ", calls[i].name, calls[i].calls, calls[i].cut, calls[i].others);
        printf("\n"), fflush(stdout);
    }
    _exit(0);
}
