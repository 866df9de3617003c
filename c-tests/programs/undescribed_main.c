/* A main that .eh_frame does not describe, as rustc writes it for panic=abort: the stacks
 * of the first thread go through it all the same. */
// cflags: -O2 -fomit-frame-pointer
// record: samples=200&hz=200
// expect: thread main has stack _start;__libc_start_main;main;real_main;host_wait_for_end
// expect: every sample of main is complete
#include "host.h"

__asm__(".text\n.globl main\n.type main,@function\nmain:\n"
        "  push %rax\n  mov %rsp,%rdi\n  xor %esi,%esi\n  call real_main\n  pop %rcx\n  ret\n"
        ".size main,.-main\n");

FRAME int real_main(void)
{
    host_begin();
    host_say("ready");
    host_wait_for_end();
    return host_end();
}
