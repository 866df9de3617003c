/* The library that hot_reload loads, in two versions of the same size: other names and
 * other frames; no program of its own. */
#include <stdatomic.h>

#ifdef NEW
#define work new_work
#define FRAME_BYTES 0x400
#else
#define work old_work
#define FRAME_BYTES 0x1400
#endif

#define USE(variable) __asm__ volatile("" : : "r"(variable) : "memory")

/* Burns CPU until `*ending`. */
__attribute__((noinline)) void work(atomic_bool *ending)
{
    char frame[FRAME_BYTES];
    while (!atomic_load(ending))
        USE(frame);
}
__attribute__((noinline)) void plugin_entry(atomic_bool *ending)
{
    char frame[FRAME_BYTES];
    USE(frame);
    work(ending);
    USE(frame);
}
