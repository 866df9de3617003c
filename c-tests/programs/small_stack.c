/* A thread with 16 KiB of stack that needs nearly all of it, 8 KiB for one array. What the
 * libraries of a process keep for each thread (static TLS) lies on the thread's stack: a
 * profiler that keeps much there ends this program by being loaded. */
// cflags: -O2
// record: samples=200&hz=200
// expect: every sample of burner has stack burner_main;work
#include "burner.h"
#include <alloca.h>
#include <link.h>

#define STACK_BYTES 16384
#define ARRAY_BYTES 8192
/* What is left free. Nothing is called while the array is there. */
#define SPARE_BYTES 768

static int find_profiler(struct dl_phdr_info *object, size_t size, void *bytes)
{
    (void)size;
    if (strstr(object->dlpi_name, "libswipr") == NULL)
        return 0;
    for (int i = 0; i < object->dlpi_phnum; i++)
        if (object->dlpi_phdr[i].p_type == PT_TLS)
            *(size_t *)bytes = object->dlpi_phdr[i].p_memsz;
    return 1;
}
/* As many bytes as this thread could use if there were no profiler. */
static size_t room_without_profiler(const char *here)
{
    pthread_attr_t attributes;
    void *low;
    size_t size, of_profiler = 0;
    HOST_CHECK(pthread_getattr_np(pthread_self(), &attributes) == 0);
    HOST_CHECK(pthread_attr_getstack(&attributes, &low, &size) == 0);
    pthread_attr_destroy(&attributes);
    dl_iterate_phdr(find_profiler, &of_profiler);
    return (size_t)(here - (char *)low) + of_profiler;
}
FRAME static void *small_main(void *argument)
{
    size_t bytes = room_without_profiler((char *)__builtin_frame_address(0)) - SPARE_BYTES;
    HOST_CHECK(bytes > ARRAY_BYTES);
    volatile char *array = alloca(bytes);
    for (size_t i = 0; i < bytes; i++)
        array[i] = 1;
    return argument;
}

int main(void)
{
    host_begin();
    pthread_attr_t attributes;
    pthread_t small;
    pthread_attr_init(&attributes);
    HOST_CHECK(pthread_attr_setstacksize(&attributes, STACK_BYTES) == 0);
    HOST_CHECK(pthread_create(&small, &attributes, small_main, NULL) == 0);
    pthread_join(small, NULL);
    pthread_t burner = burner_begin();
    host_say("ready");
    host_wait_for_end();
    pthread_join(burner, NULL);
    return host_end();
}
