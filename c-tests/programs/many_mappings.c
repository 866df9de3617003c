/* A host with as many mappings as the system allows (vm.max_map_count, 65,530). With room for a few more it must be
 * profiled. With no room left the host must keep running, whatever clients request. The hazard: the agent needs a
 * mapping and cannot have one. */
// cflags: -O2
#include "burner.h"
#include <sys/mman.h>

enum { SPARE = 400 };

int main(void)
{
    char line[64];
    host_begin();
    pthread_t burner = burner_begin();
    size_t page = (size_t)sysconf(_SC_PAGESIZE), pages = 200000;
    char *memory = mmap(NULL, pages * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    HOST_CHECK(memory != MAP_FAILED);
    /* Every second page is another mapping. */
    size_t made = 0;
    for (size_t i = 1; i < pages && mprotect(memory + i * page, page, PROT_READ) == 0; i += 2)
        made = i;
    HOST_CHECK(made > 20000);
    host_say("mappings %zu", made);
    /* Three mappings become one. */
    for (size_t i = 0; i < SPARE; i++)
        HOST_CHECK(mprotect(memory + (made - 2 * i) * page, page, PROT_NONE) == 0);
    host_say("ready");
    while (host_line(line, sizeof line)) {
        for (size_t i = 1; i < pages && mprotect(memory + i * page, page, PROT_READ) == 0; i += 2)
            made = i;
        host_say("full");
    }
    atomic_store(&host_ending, true);
    pthread_join(burner, NULL);
    return host_end();
}
