/* A file whose bytes lie elsewhere than its addresses say, as linkers other than GNU's make them: symbol servers
 * count from the image's base, and not from the file's begin. */
// cflags: -O2 -fomit-frame-pointer -Wl,-z,noseparate-code,-z,max-page-size=0x1000,--section-start=.text=0x200000,--section-start=.init=0x100000
// record: samples=500&hz=500
// expect: samples >= 100
// expect: every sample of burner has stack burner_main;first;second;third;burn
// expect: every sample of burner is complete
#include "no_frame_pointer.c"
