/* The C interface, linked: start, where it listens, recordings to files, a recording
 * around a piece of code, error texts, stop, and start again. The first argument is an
 * empty directory for what it writes. */
// cflags: -O2
// preload: no
// libs: -lswipr
#include "host.h"
#include <sys/resource.h>
#include <sys/stat.h>
#include <swipr.h>

static volatile uint64_t sink;
static atomic_bool stop_burner;

FRAME static void api_burn(void)
{
    while (!atomic_load(&stop_burner))
        sink++;
}
FRAME static void *burner_main(void *argument)
{
    api_burn();
    NOT_A_TAIL_CALL();
    return argument;
}
FRAME static void code_between(void)
{
    struct timespec start, now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &start);
    do {
        for (int i = 0; i < 100000; i++)
            sink++;
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    } while ((now.tv_sec - start.tv_sec) * 1000 + (now.tv_nsec - start.tv_nsec) / 1000000 < 300);
}
static bool file_holds(const char *path, const char *text)
{
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return false;
    bool found = false;
    char line[4096];
    while (fgets(line, sizeof line, file) != NULL)
        found = found || strstr(line, text) != NULL;
    fclose(file);
    return found;
}
static void check_error_text(const char *part)
{
    char text[512] = "", little[4] = "###";
    size_t length = swipr_last_error(text, sizeof text);
    HOST_CHECK(length > 0 && strlen(text) > 0);
    if (part != NULL && strstr(text, part) == NULL) {
        host_say("failed: the error text \"%s\" does not say %s", text, part);
        _exit(1);
    }
    /* A buffer that is too small gets a shorter text, with its end. */
    swipr_last_error(little, sizeof little);
    HOST_CHECK(memchr(little, 0, sizeof little) != NULL);
    HOST_CHECK(strncmp(little, text, 3) == 0);
}

int main(int count, char **arguments)
{
    char path[512], socket_path[512] = "", again[512] = "";
    struct stat file;
    uint64_t recording = 0;
    host_begin();
    HOST_CHECK(count == 2);
    HOST_CHECK(swipr_version() != NULL && strlen(swipr_version()) > 0);

    /* Loaded is not started. */
    HOST_CHECK(swipr_socket_path(socket_path, sizeof socket_path) == 0);

    /* Options that are too small to be options, and a socket that cannot be. */
    swipr_options options = {.size = 1, .socket = NULL};
    HOST_CHECK(swipr_start(&options) != SWIPR_OK);
    check_error_text(NULL);
    snprintf(path, sizeof path, "%s/no/such/directory.sock", arguments[1]);
    options = (swipr_options){.size = sizeof options, .socket = path};
    HOST_CHECK(swipr_start(&options) != SWIPR_OK);
    check_error_text("no/such/directory.sock");

    HOST_CHECK(swipr_start(NULL) == SWIPR_OK);
    size_t length = swipr_socket_path(socket_path, sizeof socket_path);
    HOST_CHECK(length > 0 && length == strlen(socket_path));
    HOST_CHECK(stat(socket_path, &file) == 0 && S_ISSOCK(file.st_mode));

    pthread_t burner = host_thread("burner", burner_main, NULL);
    while (sink == 0)
        NOT_A_TAIL_CALL();
    host_say("ready");
    host_wait_for_end();

    snprintf(path, sizeof path, "%s/whole.perf", arguments[1]);
    HOST_CHECK(swipr_record_to_file(path, "perf", 50, 2000) == SWIPR_OK);
    HOST_CHECK(file_holds(path, " api_burn+0x"));
    HOST_CHECK(file_holds(path, "burner"));
    snprintf(path, sizeof path, "%s/whole.folded", arguments[1]);
    HOST_CHECK(swipr_record_to_file(path, "folded", 50, 2000) == SWIPR_OK);
    HOST_CHECK(file_holds(path, "burner_main;api_burn"));

    /* A recording around a piece of code has that code in it. */
    snprintf(path, sizeof path, "%s/between.folded", arguments[1]);
    HOST_CHECK(swipr_recording_begin(path, "folded", 1000, &recording) == SWIPR_OK);
    code_between();
    HOST_CHECK(swipr_recording_end(recording) == SWIPR_OK);
    HOST_CHECK(file_holds(path, "main;code_between"));
    HOST_CHECK(swipr_recording_end(recording) != SWIPR_OK);
    check_error_text(NULL);

    /* What cannot be done is refused, with a reason. */
    HOST_CHECK(swipr_record_to_file(path, "no-such-format", 1, 1000) != SWIPR_OK);
    check_error_text("no-such-format");
    snprintf(path, sizeof path, "%s/no/such/directory.perf", arguments[1]);
    HOST_CHECK(swipr_record_to_file(path, "perf", 1, 1000) != SWIPR_OK);
    check_error_text("no/such/directory.perf");
    HOST_CHECK(swipr_record_to_file(NULL, "perf", 1, 1000) != SWIPR_OK);
    /* A full disk, and a file that may not become longer: nobody gets SIGXFSZ. */
    HOST_CHECK(swipr_record_to_file("/dev/full", "folded", 5, 2000) != SWIPR_OK);
    check_error_text("/dev/full");
    struct rlimit size, none;
    HOST_CHECK(getrlimit(RLIMIT_FSIZE, &size) == 0);
    none = (struct rlimit){.rlim_cur = 0, .rlim_max = size.rlim_max};
    snprintf(path, sizeof path, "%s/longer.folded", arguments[1]);
    HOST_CHECK(setrlimit(RLIMIT_FSIZE, &none) == 0);
    int recorded = swipr_record_to_file(path, "folded", 5, 2000);
    HOST_CHECK(setrlimit(RLIMIT_FSIZE, &size) == 0);
    HOST_CHECK(recorded != SWIPR_OK);
    check_error_text("longer.folded");
    HOST_CHECK(swipr_recording_begin(path, NULL, 1000, NULL) != SWIPR_OK);

    /* Stopped: no socket, no recordings; and it can be started again, elsewhere. */
    HOST_CHECK(swipr_stop() == SWIPR_OK);
    HOST_CHECK(stat(socket_path, &file) != 0 && errno == ENOENT);
    HOST_CHECK(swipr_socket_path(again, sizeof again) == 0);
    HOST_CHECK(swipr_record_to_file("unused", "perf", 1, 1000) != SWIPR_OK);
    snprintf(path, sizeof path, "%s/again-{PID}.sock", arguments[1]);
    options = (swipr_options){.size = sizeof options, .socket = path};
    HOST_CHECK(swipr_start(&options) == SWIPR_OK);
    HOST_CHECK(swipr_socket_path(again, sizeof again) > 0);
    HOST_CHECK(strstr(again, "/again-") != NULL && strchr(again, '{') == NULL);
    HOST_CHECK(stat(again, &file) == 0 && S_ISSOCK(file.st_mode));
    snprintf(path, sizeof path, "%s/again.folded", arguments[1]);
    HOST_CHECK(swipr_record_to_file(path, "folded", 20, 2000) == SWIPR_OK);
    HOST_CHECK(file_holds(path, "burner_main;api_burn"));
    HOST_CHECK(swipr_stop() == SWIPR_OK);

    atomic_store(&stop_burner, true);
    pthread_join(burner, NULL);
    return host_end();
}
