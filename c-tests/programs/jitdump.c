/* JIT code without frame pointers. A jitdump file describes its names and how its frames are unwound. The agent
 * finds the file by its mapping. The file describes some memory twice: the later record counts. When the program
 * says that it is ready the last record is not in the file: it is still in a stream's buffer. The recording must
 * show complete stacks with names. The hazard: a reader that takes the file for all there is, or an old record for
 * the current code. */
// cflags: -O2 -fomit-frame-pointer
// record: samples=500&hz=500
// expect: thread dumped has stack Ion:first;burn
// record: samples=500&hz=500
// expect: every sample of dumped has stack dumped_main;Ion:first;burn
// expect: every sample of dumped is complete
// expect: every sample of moved has stack Ion:moved;burn
#include "jit_code.h"
#include <fcntl.h>
#include <sys/stat.h>

static volatile uint64_t sink;
static struct made *made;
static FILE *dump;

static void put(const void *bytes, size_t count)
{
    HOST_CHECK(fwrite(bytes, 1, count, dump) == count);
}
static void record(uint32_t kind, size_t body)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    uint32_t words[2] = {kind, (uint32_t)(16 + body)};
    uint64_t time = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
    put(words, sizeof words);
    put(&time, sizeof time);
}
static void load(const void *code, size_t bytes, const char *name)
{
    static uint64_t index;
    uint64_t fields[5] = {(uint64_t)getpid(), (uintptr_t)code, (uintptr_t)code, bytes, index++};
    record(0, sizeof fields + strlen(name) + 1 + bytes);
    put(fields, sizeof fields);
    put(name, strlen(name) + 1);
    put(code, bytes);
}
static void move(const void *from, const void *to, size_t bytes)
{
    uint64_t fields[6] = {(uint64_t)getpid(), (uintptr_t)to, (uintptr_t)from, (uintptr_t)to, bytes, 0};
    record(1, sizeof fields);
    put(fields, sizeof fields);
}
static void unwinding(const struct made *piece)
{
    size_t bytes = sizeof common + 8 + 16 + 1 + sizeof rows;
    uint64_t fields[3] = {bytes, 0, 0};
    record(4, sizeof fields + bytes);
    put(fields, sizeof fields);
    put(piece->frames, bytes);
}
FRAME static void burn(void)
{
    host_arrive();
    while (!atomic_load_explicit(&host_ending, memory_order_relaxed))
        sink++;
}
FRAME static void *dumped_main(void *argument)
{
    call(&made[0], burn);
    return argument;
}
FRAME static void *moved_main(void *argument)
{
    call(&made[2], burn);
    return argument;
}

int main(void)
{
    char directory[] = "/tmp/swipr-jitdump-XXXXXX", path[64];
    host_begin();
    HOST_CHECK(mkdtemp(directory) != NULL);
    snprintf(path, sizeof path, "%s/jit-%d.dump", directory, (int)getpid());
    int fd = open(path, O_CREAT | O_TRUNC | O_RDWR, 0600);
    HOST_CHECK(fd >= 0);
    void *marker = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
    HOST_CHECK(marker != MAP_FAILED);
    dump = fdopen(fd, "w");
    HOST_CHECK(dump != NULL);
    uint32_t head[6] = {0x4a695444, 1, 40, 62, 0, (uint32_t)getpid()};
    uint64_t rest[2] = {0, 0};
    put(head, sizeof head);
    put(rest, sizeof rest);
    made = new_pieces(3);
    for (int n = 0; n < 3; n++)
        make(&made[n], 32);
    load(made[0].code, sizeof code, "Ion:before");
    unwinding(&made[0]);
    load(made[0].code, sizeof code, "Ion:first");
    load(made[1].code, sizeof code, "Ion:moved");
    HOST_CHECK(fflush(dump) == 0);
    move(made[1].code, made[2].code, sizeof code);
    pthread_t dumped = host_thread("dumped", dumped_main, NULL);
    pthread_t moved = host_thread("moved", moved_main, NULL);
    host_wait_until_arrived(2);
    host_say("ready");
    host_wait_for_end();
    pthread_join(dumped, NULL);
    pthread_join(moved, NULL);
    fclose(dump);
    munmap(marker, 4096);
    unlink(path);
    rmdir(directory);
    munmap(made, 3 * sizeof *made);
    return host_end();
}
