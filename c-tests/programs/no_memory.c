/* A host whose memory is limited (setrlimit(2): RLIMIT_AS, RLIMIT_DATA, RLIMIT_MEMLOCK with mlockall(2)) to what it has
 * already, and a little more if its input says so: there is hardly any for a profiler. The host must keep running,
 * whatever clients request. It must have its own memory as without a profiler. The hazard: the agent ends the process
 * when it gets no memory. */
// cflags: -O2
#include "host.h"
#include <sys/mman.h>
#include <sys/resource.h>

static volatile uint64_t sink;
static atomic_long worked;

FRAME static void compute(void)
{
    for (long i = 0; i < 1000000; i++)
        sink++;
}
FRAME static void *burner_main(void *argument)
{
    while (!atomic_load(&host_ending)) {
        /* From what was there before. */
        char *memory = malloc(1000);
        HOST_CHECK(memory != NULL);
        memset(memory, 1, 1000);
        compute();
        free(memory);
        atomic_fetch_add(&worked, 1);
    }
    return argument;
}
static unsigned long kib_of(const char *name)
{
    char text[4096];
    FILE *file = fopen("/proc/self/status", "re");
    size_t length = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[length] = 0;
    const char *found = strstr(text, name);
    HOST_CHECK(found != NULL);
    return strtoul(found + strlen(name), NULL, 10);
}
static void limit(int resource, unsigned long bytes)
{
    struct rlimit room;
    HOST_CHECK(getrlimit(resource, &room) == 0);
    room.rlim_cur = bytes;
    HOST_CHECK(setrlimit(resource, &room) == 0);
}

/* Whatever is mapped from now on has to fit into what may be locked. Root may lock all. */
static void lock_what_comes(unsigned long bytes)
{
    struct rlimit room = {bytes, bytes};
    HOST_CHECK(setrlimit(RLIMIT_MEMLOCK, &room) == 0);
    if (geteuid() == 0)
        HOST_CHECK(setresuid(65534, 65534, 65534) == 0);
    HOST_CHECK(mlockall(MCL_FUTURE) == 0);
}

int main(void)
{
    char line[64];
    const struct timespec pause = {0, 1000000};
    host_begin();
    pthread_t burner = host_thread("burner", burner_main, NULL);
    while (sink == 0)
        NOT_A_TAIL_CALL();
    host_say("ready");
    while (host_line(line, sizeof line)) {
        unsigned long more = 0;
        if (sscanf(line, "address-space %lu", &more) == 1)
            limit(RLIMIT_AS, (kib_of("VmSize:") << 10) + more);
        else if (sscanf(line, "data %lu", &more) == 1)
            limit(RLIMIT_DATA, (kib_of("VmData:") << 10) + more);
        else if (sscanf(line, "locked %lu", &more) == 1)
            lock_what_comes(more);
        else
            more = ~0UL;
        long rounds = atomic_load(&worked);
        while (atomic_load(&worked) < rounds + 50)
            nanosleep(&pause, NULL);
        host_say(more == ~0UL ? "worked" : "limited");
    }
    atomic_store(&host_ending, true);
    pthread_join(burner, NULL);
    return host_end();
}
