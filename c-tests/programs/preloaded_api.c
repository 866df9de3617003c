/* A preloaded program that calls the C interface, too, at once: in main, when the agent
 * may just be starting, and in a child of fork. The first argument is an empty directory
 * for what it writes. */
// cflags: -O2
// libs: -lswipr
#include "host.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <swipr.h>

static char directory[256];

static void record(const char *name)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s.folded", directory, name);
    HOST_CHECK(swipr_record_to_file(path, "folded", 5, 2000) == SWIPR_OK);
}

/* Forks; the child does `body` and is expected to be content. */
static void in_child(void (*body)(uint64_t), uint64_t argument)
{
    pid_t child = fork();
    HOST_CHECK(child >= 0);
    if (child == 0) {
        host_begin();
        body(argument);
        _exit(0);
    }
    int status = 0;
    HOST_CHECK(waitpid(child, &status, 0) == child);
    HOST_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void start_and_record(uint64_t unused)
{
    (void)unused;
    HOST_CHECK(swipr_start(NULL) == SWIPR_ALREADY_RUNNING);
    record("child-started");
}

static void record_at_once(uint64_t unused)
{
    (void)unused;
    record("child-at-once");
}

static void path_at_once(uint64_t unused)
{
    char path[256], own[32];
    (void)unused;
    HOST_CHECK(swipr_socket_path(path, sizeof path) > 0);
    snprintf(own, sizeof own, "/%d.sock", (int)getpid());
    HOST_CHECK(strstr(path, own) != NULL);
}

/* Not what the filter forbids: the agent's threads have none. */
static void record_in_a_sandbox(uint64_t unused)
{
    char path[512];
    struct sock_filter filter[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog program = {.len = 1, .filter = filter};
    (void)unused;
    HOST_CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    HOST_CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
    snprintf(path, sizeof path, "%s/child-in-a-sandbox.folded", directory);
    HOST_CHECK(swipr_record_to_file(path, "folded", 5, 2000) == SWIPR_RECORDING_FAILED);
    HOST_CHECK(access(path, F_OK) != 0);
}

static void stop_at_once(uint64_t unused)
{
    char path[256];
    (void)unused;
    HOST_CHECK(swipr_stop() == SWIPR_OK);
    HOST_CHECK(swipr_socket_path(path, sizeof path) == 0);
}

static void parents_recording(uint64_t recording)
{
    char path[512];
    uint64_t own;
    HOST_CHECK(swipr_recording_end(recording) == SWIPR_INVALID_ARGUMENT);
    snprintf(path, sizeof path, "%s/child-own.folded", directory);
    HOST_CHECK(swipr_recording_begin(path, "folded", 1000, &own) == SWIPR_OK);
    HOST_CHECK(own != recording);
    HOST_CHECK(swipr_recording_end(own) == SWIPR_OK);
}

int main(int count, char **arguments)
{
    char path[512];
    uint64_t recording;
    host_begin();
    HOST_CHECK(count == 2);
    snprintf(directory, sizeof directory, "%s", arguments[1]);

    HOST_CHECK(swipr_start(NULL) == SWIPR_ALREADY_RUNNING);
    record("started");

    in_child(start_and_record, 0);
    in_child(record_at_once, 0);
    in_child(path_at_once, 0);
    in_child(stop_at_once, 0);
    in_child(record_in_a_sandbox, 0);

    /* The child knows nothing of a recording that its parent has begun. */
    snprintf(path, sizeof path, "%s/around.folded", directory);
    HOST_CHECK(swipr_recording_begin(path, "folded", 1000, &recording) == SWIPR_OK);
    in_child(parents_recording, recording);
    HOST_CHECK(swipr_recording_end(recording) == SWIPR_OK);

    host_say("ready");
    host_wait_for_end();
    return host_end();
}
