/* Memory that the host gives back and maps again later at the same place, as programs do that move their own heaps. The
 * host must find nothing mapped there. The hazard: the agent has mapped memory there meanwhile. To map over it
 * (MAP_FIXED) would replace the agent's memory without an error. */
// cflags: -O2
// record: seconds=1&hz=500
// expect: samples >= 100
// record: seconds=6&hz=500&mode=cpu
// expect: samples >= 20
#include "host.h"
#include <poll.h>
#include <sys/mman.h>

#define PAGE 4096ul
#define HOLE (512 * 1024ul) /* less than a thread's stack, which the C library maps */

int main(void)
{
    host_begin();
    char *memory = mmap(NULL, HOLE + 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    HOST_CHECK(memory != MAP_FAILED);
    char *hole = memory + PAGE;
    HOST_CHECK(munmap(hole, HOLE) == 0);
    host_say("ready");
    volatile unsigned long sum = 0;
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    while (poll(&input, 1, 1) == 0)
        for (int i = 0; i < 1000000; i++)
            sum += i;
    host_wait_for_end();
    HOST_CHECK(mmap(hole, HOLE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == (void *)hole);
    return host_end();
}
