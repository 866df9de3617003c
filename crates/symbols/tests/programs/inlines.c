/* A chain of inlined functions, a static one, and a call that does not return. */
#include <stdio.h>
#include <stdlib.h>

volatile int sink;

static inline __attribute__((always_inline)) void innermost(int n) {
    sink += n; /* innermost */
}

static inline __attribute__((always_inline)) void middle(int n) {
    for (int i = 0; i < n; i++)
        innermost(i); /* middle */
}

__attribute__((noinline)) void outer(int n) {
    middle(n + 1); /* outer */
    sink = 0;
}

static __attribute__((noinline)) int hidden(int n) {
    sink = n * 3; /* hidden */
    return sink + 1;
}

__attribute__((noinline, noreturn)) void leave(int code) {
    exit(code); /* leave */
}

int main(int argc, char **argv) {
    (void)argv;
    outer(argc);
    printf("%d\n", hidden(argc));
    puts("done");
    leave(0);
}
