/* The tree of truth.c as a compiler leaves it that optimises nothing: frame pointers, and calls where there were jumps. */
// cflags: -O0
#include "truth.c"
