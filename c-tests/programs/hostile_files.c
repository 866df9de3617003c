/* Files that were made to harm their readers, mapped as code, all but one with a thread that runs in it: an ELF file
 * of garbage behind its header, one whose tables point beyond its end, one that is cut to nothing while it is mapped,
 * a FIFO in a mapped file's place, and names with line breaks, quotes and escape sequences. The host must keep
 * running, and recordings must be well-formed. The hazard: the agent crashes, waits for ever, or writes such names as
 * they are. */
// cflags: -O2
#include "host.h"
#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define CODE_AT 4096
#define FILE_BYTES 8192

typedef void loop(atomic_bool *end);

static const char *directory;

/* while (!*end); return */
static const unsigned char code[] = {0x80, 0x3f, 0x00, 0x74, 0xfb, 0xc3};

static int made(const char *name, char *path, size_t capacity)
{
    snprintf(path, capacity, "%s/%s", directory, name);
    int file = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0700);
    HOST_CHECK(file >= 0);
    return file;
}
static void fill(int file, uint64_t seed, bool tables_beyond)
{
    static unsigned char bytes[FILE_BYTES];
    for (size_t i = 0; i < sizeof bytes; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        bytes[i] = (unsigned char)(seed >> 56);
    }
    Elf64_Ehdr *head = (Elf64_Ehdr *)bytes;
    memcpy(head->e_ident, ELFMAG, SELFMAG);
    head->e_ident[EI_CLASS] = ELFCLASS64;
    head->e_ident[EI_DATA] = ELFDATA2LSB;
    head->e_ident[EI_VERSION] = EV_CURRENT;
    head->e_type = ET_DYN;
    head->e_machine = EM_X86_64;
    head->e_version = EV_CURRENT;
    head->e_ehsize = sizeof *head;
    head->e_phentsize = sizeof(Elf64_Phdr);
    head->e_shentsize = sizeof(Elf64_Shdr);
    if (tables_beyond) {
        head->e_phoff = head->e_shoff = UINT64_MAX - 8;
        head->e_phnum = head->e_shnum = head->e_shstrndx = 0xfffe;
    }
    memcpy(bytes + CODE_AT, code, sizeof code);
    HOST_CHECK(pwrite(file, bytes, sizeof bytes, 0) == sizeof bytes);
}

struct place {
    const char *name;
    /* Of the thread that runs in it; NULL: none does. */
    const char *thread;
    unsigned char *memory;
    int file;
};
static void *inside(void *argument)
{
    struct place *place = argument;
    host_arrive();
    ((loop *)(place->memory + CODE_AT))(&host_ending);
    NOT_A_TAIL_CALL();
    return NULL;
}

int main(int count, char **arguments)
{
    static struct place places[] = {
        {"garbage.so", "garbage", NULL, 0},
        {"beyond.so", "beyond\n\n1/1 x", NULL, 0},
        {"shrinks.so", NULL, NULL, 0},
        {"replaced.so", "\"},{\"a\":\"", NULL, 0},
        {"\n\033[31m\"quo;te\\ (x) {y}.so", "\033[31mred;\r\n", NULL, 0},
        {"\xff\xfe\xc3(.so", "\xff\xfe\xc3(", NULL, 0},
        {"0123456789012345678901234567890123456789012345678901234567890123456789"
         "0123456789012345678901234567890123456789012345678901234567890123456789"
         "0123456789012345678901234567890123456789012345678901234567890123456789"
         "012345678901234567890123456789012345678901.so", "", NULL, 0},
    };
    const size_t all = sizeof places / sizeof places[0];
    pthread_t threads[sizeof places / sizeof places[0]];
    char path[4096], line[64];
    host_begin();
    HOST_CHECK(count == 2);
    directory = arguments[1];
    for (size_t i = 0; i < all; i++) {
        struct place *place = &places[i];
        place->file = made(place->name, path, sizeof path);
        fill(place->file, i + 1, i == 1);
        place->memory = mmap(NULL, FILE_BYTES, PROT_READ | PROT_EXEC, MAP_PRIVATE, place->file, 0);
        HOST_CHECK(place->memory != MAP_FAILED);
        if (place->thread != NULL)
            threads[i] = host_thread(place->thread, inside, place);
    }
    snprintf(path, sizeof path, "%s/%s", directory, places[3].name);
    HOST_CHECK(unlink(path) == 0 && mkfifo(path, 0600) == 0);
    host_wait_until_arrived((int)all - 1);
    host_say("ready");
    while (host_line(line, sizeof line)) {
        /* shrink, grow */
        HOST_CHECK(ftruncate(places[2].file, strcmp(line, "shrink") == 0 ? 0 : FILE_BYTES) == 0);
        host_say("%s done", line);
    }
    atomic_store(&host_ending, true);
    for (size_t i = 0; i < all; i++)
        if (places[i].thread != NULL)
            pthread_join(threads[i], NULL);
    return host_end();
}
