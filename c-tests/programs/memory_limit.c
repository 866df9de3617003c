/* Limits its address space to what it has and as many KiB more as a line of its input says, while its threads compute;
 * `lift` takes the limit back. The host must run as before: the memory that it needs itself is there already. The
 * hazard: the agent cannot have the memory that it needs. */
// cflags: -O2
#include "burner.h"
#include <sys/resource.h>

static unsigned long address_space_kib(void)
{
    char text[128];
    FILE *file = fopen("/proc/self/statm", "re");
    HOST_CHECK(file != NULL && fgets(text, sizeof text, file) != NULL);
    fclose(file);
    return strtoul(text, NULL, 10) * (unsigned long)(sysconf(_SC_PAGESIZE) / 1024);
}

int main(void)
{
    char line[64];
    struct rlimit before;
    host_begin();
    HOST_CHECK(getrlimit(RLIMIT_AS, &before) == 0);
    pthread_t burner = burner_begin();
    host_say("ready");
    while (host_line(line, sizeof line)) {
        bool lift = strcmp(line, "lift") == 0;
        struct rlimit limit = before;
        if (!lift)
            limit.rlim_cur = (address_space_kib() + strtoul(line, NULL, 10)) * 1024;
        HOST_CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
        host_say(lift ? "lifted" : "limited");
    }
    atomic_store(&host_ending, true);
    pthread_join(burner, NULL);
    return host_end();
}
