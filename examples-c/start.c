/* Starts swipr inside this program and says how to ask for a profile. The program works
 * until its standard input ends.
 *
 *     make && build/start
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <swipr.h>

static atomic_bool ending;
static volatile uint64_t primes_found;

static int is_prime(uint64_t number)
{
    for (uint64_t divisor = 2; divisor * divisor <= number; divisor++)
        if (number % divisor == 0)
            return 0;
    return 1;
}

static void count_primes(uint64_t from)
{
    for (uint64_t number = from; !atomic_load(&ending); number++)
        primes_found += (uint64_t)is_prime(number);
}

static void *worker(void *unused)
{
    (void)unused;
    count_primes(1000000);
    return NULL;
}

int main(void)
{
    char text[512];
    pthread_t thread;

    /* NULL: listen where the environment says, else in the default place. */
    if (swipr_start(NULL) != SWIPR_OK) {
        /* No profiler is no reason to stop working. */
        swipr_last_error(text, sizeof text);
        fprintf(stderr, "not profiled: %s\n", text);
    } else {
        swipr_socket_path(text, sizeof text);
        printf("swipr %s listens. Try:\n", swipr_version());
        printf("  curl --unix-socket %s 'http://localhost/profile?seconds=5&format=folded'\n", text);
    }
    printf("Close the standard input (Ctrl-D) to end.\n");
    fflush(stdout);

    if (pthread_create(&thread, NULL, worker, NULL) != 0)
        return 1;
    while (getchar() != EOF)
        ;
    atomic_store(&ending, 1);
    pthread_join(thread, NULL);
    swipr_stop();
    return 0;
}
