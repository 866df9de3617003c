/* Profiles one part of a program and nothing else, into a file: the threads that use a
 * processor, 1000 times a second.
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

/* What a call of swipr's did not do, and why. */
static int failed(const char *call, swipr_status status)
{
    char why[512];
    swipr_last_error(why, sizeof why);
    fprintf(stderr, "%s: %s: %s\n", call, swipr_strerror(status), why);
    return 1;
}

int main(int count, char **arguments)
{
    const char *file = count > 1 ? arguments[1] : "start_stop.folded";
    swipr_recording_options options = SWIPR_RECORDING_OPTIONS_INIT;
    swipr_status status;
    uint64_t recording;

    status = swipr_start(NULL);
    /* Preloaded, it runs already. */
    if (status != SWIPR_OK && status != SWIPR_ALREADY_RUNNING)
        return failed("swipr_start", status);

    options.mode = SWIPR_MODE_CPU;
    options.hz = 1000;
    status = swipr_recording_begin_with(file, "folded", &options, &recording);
    if (status != SWIPR_OK)
        return failed("swipr_recording_begin_with", status);
    sort_numbers();
    status = swipr_recording_end(recording);
    if (status != SWIPR_OK)
        return failed("swipr_recording_end", status);

    swipr_stop();
    printf("%s\n", file);
    return 0;
}
