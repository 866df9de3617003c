/* How much stack the profiler's handler needs: the threads of truth.c with painted alternate stacks, where its signal lands and nothing else
 * does. They are interrupted everywhere, with everything that an unwinder meets there, cold and warm. */
// cflags: -O2 -fomit-frame-pointer -foptimize-sibling-calls
#define ALTERNATE_STACKS
#include "truth.c"
