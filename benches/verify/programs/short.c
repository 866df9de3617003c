/* Some 0.8 s of CPU: arithmetic, and the C library's sort. */
#include <stdlib.h>

static volatile unsigned long sink;

__attribute__((noinline)) static unsigned long leaf(unsigned long x)
{
    for (int i = 0; i < 200; i++)
        x = x * 6364136223846793005UL + 1442695040888963407UL;
    return x;
}

__attribute__((noinline)) static unsigned long middle(unsigned long x)
{
    for (int i = 0; i < 10; i++)
        x ^= leaf(x + i);
    return x + 1;
}

static int compare(const void *a, const void *b)
{
    return *(const int *)a < *(const int *)b ? -1 : 1;
}

__attribute__((noinline)) static void sorting(unsigned long x)
{
    int values[1000];
    for (int i = 0; i < 1000; i++) {
        x = x * 6364136223846793005UL + 1;
        values[i] = x >> 33;
    }
    qsort(values, 1000, sizeof *values, compare);
    sink += values[5];
}

int main(void)
{
    for (int i = 0; i < 1550; i++) {
        for (int k = 0; k < 200; k++)
            sink += middle(k);
        for (int k = 0; k < 4; k++)
            sorting(i);
    }
    return 0;
}
