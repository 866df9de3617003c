/* Profiles one part of a program and nothing else, into a file.
 *
 *     make && build/start_stop profile.folded
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <swipr.h>

static volatile uint64_t sink;

static void fill(uint64_t *values, size_t count)
{
    uint64_t state = 88172645463325252u;
    for (size_t i = 0; i < count; i++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        values[i] = state;
    }
}

static int compare(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

static void sort_numbers(void)
{
    size_t count = 1000000;
    uint64_t *values = malloc(count * sizeof *values);
    if (values == NULL)
        return;
    for (int round = 0; round < 5; round++) {
        fill(values, count);
        qsort(values, count, sizeof *values, compare);
        sink += values[count / 2];
    }
    free(values);
}

/* Says why something of swipr's failed. */
static int failed(const char *what)
{
    char text[512];
    swipr_last_error(text, sizeof text);
    fprintf(stderr, "%s: %s\n", what, text);
    return 1;
}

int main(int count, char **arguments)
{
    const char *file = count > 1 ? arguments[1] : "start_stop.folded";
    uint64_t recording;

    if (swipr_start(NULL) != SWIPR_OK)
        return failed("cannot start swipr");
    /* One sample every 1000 microseconds, as folded stacks. */
    if (swipr_recording_begin(file, "folded", 1000, &recording) != SWIPR_OK)
        return failed("cannot record");
    sort_numbers();
    if (swipr_recording_end(recording) != SWIPR_OK)
        return failed("cannot finish the recording");
    swipr_stop();
    printf("%s\n", file);
    return 0;
}
