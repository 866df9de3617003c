/* As stubs_bound_at_start.c, with stubs that bind at the first call: they push before they jump, and their frames' size depends
 * on where in them a thread is. */
// cflags: -O2 -fplt -fno-builtin -fcf-protection=none -Wl,-z,lazy
// record: samples=500&hz=500
// expect: every sample of library has stack library_main;call_again
// expect: every sample of library is complete
// expect: every sample of chosen has stack chosen_main;choose_again
// expect: every sample of chosen is complete
#include "stubs_bound_at_start.c"
