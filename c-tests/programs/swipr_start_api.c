/* The C interface, linked: start, where it listens, recordings to files, a recording
 * around a piece of code, options, error texts, stop, and start again. The first argument is an
 * empty directory for what it writes. */
// cflags: -O2
// preload: no
// libs: -lswipr
#include "host.h"
#include <semaphore.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <swipr.h>

static volatile uint64_t sink;
static atomic_bool stop_burner;
static sem_t end_of_idle;

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
    for (uint64_t start = host_thread_cpu_ns(); host_thread_cpu_ns() - start < 300000000;)
        for (int i = 0; i < 100000; i++)
            sink++;
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

static atomic_long idle_tid;

static void *idle_main(void *argument)
{
    atomic_store(&idle_tid, syscall(SYS_gettid));
    sem_wait(&end_of_idle);
    NOT_A_TAIL_CALL();
    return argument;
}

static void *later_main(void *argument)
{
    code_between();
    NOT_A_TAIL_CALL();
    return argument;
}

/* Recordings as their options say. */
static void with_options(const char *directory)
{
    char path[512];
    uint64_t recording = 0;
    swipr_recording_options options = SWIPR_RECORDING_OPTIONS_INIT;
    HOST_CHECK(sem_init(&end_of_idle, 0, 0) == 0);
    pthread_t idle = host_thread("idle", idle_main, NULL);
    char tid[32];
    do {
        nanosleep(&(struct timespec){0, 1000000}, NULL);
        snprintf(tid, sizeof tid, "%ld", atomic_load(&idle_tid));
    } while (host_thread_state(tid) != 'S');

    /* In CPU mode a thread that waits is not there, in wall mode it is; others have another name. */
    options.mode = SWIPR_MODE_CPU;
    options.hz = 500;
    options.threads = "^(burner|idle)$";
    options.lines = 1;
    snprintf(path, sizeof path, "%s/options.perf", directory);
    HOST_CHECK(swipr_record_to_file_with(path, "perf", 250, &options) == SWIPR_OK);
    HOST_CHECK(file_holds(path, "api_burn"));
    HOST_CHECK(file_holds(path, "swipr_start_api.c:"));
    HOST_CHECK(!file_holds(path, " idle_main"));
    HOST_CHECK(!file_holds(path, " main+0x"));
    options.mode = SWIPR_MODE_WALL;
    options.lines = 0;
    HOST_CHECK(swipr_record_to_file_with(path, "perf", 250, &options) == SWIPR_OK);
    HOST_CHECK(!file_holds(path, "swipr_start_api.c:"));
    HOST_CHECK(file_holds(path, " idle_main"));
    HOST_CHECK(!file_holds(path, " main+0x"));

    /* A part, with a title; and one with the defaults. */
    options.title = "a part of <it>";
    options.threads = NULL;
    snprintf(path, sizeof path, "%s/options.svg", directory);
    HOST_CHECK(swipr_recording_begin_with(path, "svg", &options, &recording) == SWIPR_OK);
    code_between();
    HOST_CHECK(swipr_recording_end(recording) == SWIPR_OK);
    HOST_CHECK(file_holds(path, "a part of &lt;it&gt;"));
    HOST_CHECK(file_holds(path, "code_between"));
    snprintf(path, sizeof path, "%s/defaults.folded", directory);
    HOST_CHECK(swipr_recording_begin_with(path, "folded", NULL, &recording) == SWIPR_OK);
    code_between();
    HOST_CHECK(swipr_recording_end(recording) == SWIPR_OK);
    HOST_CHECK(file_holds(path, "code_between"));
    sem_post(&end_of_idle);
    pthread_join(idle, NULL);

    /* A thread that begins after the recording has, and is named a moment after that. All names are read again when a
     * recording begins after a pause, and then a second later. */
    usleep(1100000);
    options.threads = "^later$";
    snprintf(path, sizeof path, "%s/later.folded", directory);
    HOST_CHECK(swipr_recording_begin_with(path, "folded", &options, &recording) == SWIPR_OK);
    pthread_t later = host_thread("other", later_main, NULL);
    usleep(10000);
    pthread_setname_np(later, "later");
    pthread_join(later, NULL);
    HOST_CHECK(swipr_recording_end(recording) == SWIPR_OK);
    HOST_CHECK(file_holds(path, "later_main"));
}

/* Options that are wrong are refused, with the field's name, before a file is made. */
static void wrong_options(const char *directory)
{
    static char too_long[1002];
    const swipr_recording_options right = SWIPR_RECORDING_OPTIONS_INIT;
    swipr_recording_options wrong[8];
    const char *reasons[] = {"options->size", "options->mode", "options->hz", "options->hz",
                             "options->hz", "options->threads", "options->title", "options->title"};
    char path[512];
    struct stat file;
    snprintf(path, sizeof path, "%s/wrong.folded", directory);
    memset(too_long, 'x', sizeof too_long - 1);
    for (int i = 0; i < 8; i++)
        wrong[i] = right;
    wrong[0].size--;
    wrong[1].mode = 7;
    wrong[2].hz = -100;
    wrong[3].hz = 10001;
    wrong[4].hz = __builtin_nan("");
    wrong[5].threads = "(";
    wrong[6].title = too_long;
    wrong[7].title = "two\nlines";
    for (int i = 0; i < 8; i++) {
        uint64_t recording = 7;
        HOST_CHECK(swipr_record_to_file_with(path, "folded", 1, &wrong[i]) == SWIPR_INVALID_ARGUMENT);
        check_error_text(reasons[i]);
        HOST_CHECK(swipr_recording_begin_with(path, "folded", &wrong[i], &recording) == SWIPR_INVALID_ARGUMENT);
        HOST_CHECK(recording == 7);
    }
    HOST_CHECK(stat(path, &file) != 0 && errno == ENOENT);
}

/* Every status has words of its own. */
static void status_texts(void)
{
    for (swipr_status status = SWIPR_OK; status <= SWIPR_FAILED; status++) {
        HOST_CHECK(strlen(swipr_strerror(status)) > 3);
        HOST_CHECK(strcmp(swipr_strerror(status), swipr_strerror(status + 1)) != 0);
    }
    HOST_CHECK(strcmp(swipr_strerror(-1), swipr_strerror(1000)) == 0);
}

/* A file has the program's umask, also where that is another one than at the agent's start. */
static void file_mode(const char *directory)
{
    char path[512];
    struct stat file;
    snprintf(path, sizeof path, "%s/mode.folded", directory);
    mode_t before = umask(077);
    HOST_CHECK(swipr_record_to_file(path, "folded", 1, 1000) == SWIPR_OK);
    umask(before);
    HOST_CHECK(stat(path, &file) == 0);
    HOST_CHECK((file.st_mode & 0777) == 0600);
}

/* So many recordings as may run; one more is refused at once. */
static void too_many(const char *directory)
{
    uint64_t recordings[8], ninth = 7;
    char path[512];
    for (int i = 0; i < 8; i++) {
        snprintf(path, sizeof path, "%s/many-%d.folded", directory, i);
        HOST_CHECK(swipr_recording_begin(path, "folded", 10000, &recordings[i]) == SWIPR_OK);
    }
    HOST_CHECK(swipr_recording_begin(path, "folded", 10000, &ninth) == SWIPR_RECORDING_FAILED);
    check_error_text("8 recordings are running");
    HOST_CHECK(ninth == 7);
    for (int i = 0; i < 8; i++)
        HOST_CHECK(swipr_recording_end(recordings[i]) == SWIPR_OK);
}

/* The child of a fork has an agent of its own, also where its parent's has the place of the options. */
static void fork_with_fixed_place(const char *directory)
{
    char path[512], socket_path[512] = "", childs[512] = "";
    snprintf(path, sizeof path, "%s/fixed.sock", directory);
    swipr_options options = {.size = sizeof options, .socket = path};
    HOST_CHECK(swipr_start(&options) == SWIPR_OK);
    HOST_CHECK(swipr_socket_path(socket_path, sizeof socket_path) > 0);
    pid_t child = fork();
    if (child == 0) {
        HOST_CHECK(swipr_socket_path(childs, sizeof childs) > 0);
        HOST_CHECK(strcmp(childs, socket_path) != 0);
        snprintf(path, sizeof path, "%s/fixed-child.folded", directory);
        HOST_CHECK(swipr_record_to_file(path, "folded", 1, 1000) == SWIPR_OK);
        HOST_CHECK(swipr_stop() == SWIPR_OK);
        _exit(0);
    }
    int status = 1;
    HOST_CHECK(waitpid(child, &status, 0) == child && status == 0);
    HOST_CHECK(swipr_stop() == SWIPR_OK);
}

int main(int count, char **arguments)
{
    char path[512], socket_path[512] = "", again[512] = "";
    struct stat file;
    uint64_t recording = 0;
    host_begin();
    HOST_CHECK(count == 2);
    HOST_CHECK(strcmp(swipr_version(), SWIPR_VERSION) == 0);

    /* Loaded is not started. */
    HOST_CHECK(swipr_socket_path(socket_path, sizeof socket_path) == 0);

    /* Options that are too small to be options, and a socket that cannot be. */
    swipr_options options = SWIPR_OPTIONS_INIT;
    HOST_CHECK(options.size == sizeof options && options.socket == NULL);
    options.size = 1;
    HOST_CHECK(swipr_start(&options) != SWIPR_OK);
    check_error_text(NULL);
    options.size = (size_t)-1;
    HOST_CHECK(swipr_start(&options) != SWIPR_OK);
    check_error_text("was not initialized");

    /* Options of a later version. */
    struct {
        swipr_options known;
        long later;
    } larger = {{sizeof larger, NULL}, 1};
    HOST_CHECK(swipr_start(&larger.known) == SWIPR_INVALID_ARGUMENT);
    check_error_text("does not know");
    larger.later = 0;
    snprintf(path, sizeof path, "%s/no/such/directory.sock", arguments[1]);
    larger.known.socket = path;
    HOST_CHECK(swipr_start(&larger.known) == SWIPR_CANNOT_LISTEN);
    check_error_text("no/such/directory.sock");
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
    HOST_CHECK(swipr_record_to_file(path, "perf", 250, 2000) == SWIPR_OK);
    HOST_CHECK(file_holds(path, " api_burn+0x"));
    HOST_CHECK(file_holds(path, "burner"));
    snprintf(path, sizeof path, "%s/whole.folded", arguments[1]);
    HOST_CHECK(swipr_record_to_file(path, "folded", 250, 2000) == SWIPR_OK);
    HOST_CHECK(file_holds(path, "burner_main;api_burn"));

    /* A recording around a piece of code has that code in it. */
    snprintf(path, sizeof path, "%s/between.folded", arguments[1]);
    HOST_CHECK(swipr_recording_begin(path, "folded", 1000, &recording) == SWIPR_OK);
    code_between();
    HOST_CHECK(swipr_recording_end(recording) == SWIPR_OK);
    HOST_CHECK(file_holds(path, "main;code_between"));
    HOST_CHECK(swipr_recording_end(recording) != SWIPR_OK);
    check_error_text(NULL);

    with_options(arguments[1]);
    wrong_options(arguments[1]);
    status_texts();
    too_many(arguments[1]);
    file_mode(arguments[1]);

    /* What cannot be done is refused, with a reason. */
    HOST_CHECK(swipr_record_to_file(path, "no-such-format", 1, 1000) != SWIPR_OK);
    check_error_text("no-such-format");
    snprintf(path, sizeof path, "%s/no/such/directory.perf", arguments[1]);
    HOST_CHECK(swipr_record_to_file(path, "perf", 1, 1000) != SWIPR_OK);
    check_error_text("no/such/directory.perf");
    /* Before anything is recorded. */
    HOST_CHECK(swipr_recording_begin(path, "perf", 1000, &recording) == SWIPR_RECORDING_FAILED);
    check_error_text("no/such/directory.perf: No such file");
    HOST_CHECK(swipr_record_to_file(NULL, "perf", 1, 1000) != SWIPR_OK);
    /* A full disk, and a file at its size limit: no thread gets SIGXFSZ. */
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
    HOST_CHECK(swipr_record_to_file(path, "folded", 250, 2000) == SWIPR_OK);
    HOST_CHECK(file_holds(path, "burner_main;api_burn"));
    HOST_CHECK(swipr_stop() == SWIPR_OK);
    fork_with_fixed_place(arguments[1]);

    atomic_store(&stop_burner, true);
    pthread_join(burner, NULL);
    return host_end();
}
