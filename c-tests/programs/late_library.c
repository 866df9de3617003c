/* The library that dlopen_late loads; no program of its own. */
#include <stdatomic.h>

/* Burns CPU until `*ending`, or for `rounds`. */
__attribute__((noinline)) void late_function(atomic_bool *ending, unsigned long rounds)
{
    for (unsigned long i = 0; i < rounds && !atomic_load(ending); i++)
        __asm__ volatile("" ::: "memory");
}
