/* As frame_in_another_register.c, described for a debugger only: none of it is in memory. */
// cflags: -O2 -g -fomit-frame-pointer -fno-asynchronous-unwind-tables -fno-unwind-tables -fno-exceptions
// record: samples=500&hz=500
// expect: every sample of burner has stack burner_main;through_rbx;second;through_r12;third;through_r13;burn
// expect: every sample of burner is complete
// expect: every sample of reader has stack reader_main;through_rbx;second;through_r12;third;through_r13;wait_for_answer
// expect: every sample of reader is complete
// expect: every sample of handler has stack handler_main;through_rbx;second;through_r12;third;through_r13;on_signal;through_r12;burn
// expect: every sample of handler is complete
// expect: every sample of assembly has stack assembly_main;through_rax;spin
// expect: every sample of assembly is complete
// expect: every sample of recursion has stack recursion_main;through_rbx;deeper;through_r12;deeper;through_rbx;deeper;through_rsp;deeper;through_rbx;deeper;through_r12;deeper;burn
// expect: every sample of recursion is complete
#include "frame_in_another_register.c"
