/* swipr: a sampling profiler that lives inside the process it profiles.
 *
 * Link with -lswipr, or load the library with dlopen and use the swipr_..._fn types at the end for what
 * dlsym finds. Preloaded with LD_PRELOAD it starts by itself and no call is needed.
 *
 * Generated from agent/src/ffi.rs; do not edit. SPDX-License-Identifier: MIT OR Apache-2.0 */

#ifndef SWIPR_H
#define SWIPR_H

#include <stddef.h>
#include <stdint.h>

// The version of this header; swipr_version() answers the library's.
#define SWIPR_VERSION "0.1.0"
#define SWIPR_VERSION_MAJOR 0
#define SWIPR_VERSION_MINOR 1
#define SWIPR_VERSION_PATCH 0

// What an entry point answers: `SWIPR_OK`, or what went wrong; `swipr_last_error` has the words.
typedef int32_t swipr_status;

// Options of `swipr_start`: `swipr_options options = SWIPR_OPTIONS_INIT;`, then the fields that
// matter. Later versions add fields at the end; a library that does not know them refuses them
// unless they are 0.
typedef struct {
  // `sizeof(swipr_options)`.
  size_t size;
  // Where to listen: a path, which may contain `{PID}`, `{UUID}`, `{HOSTNAME}` and `{COMM}`, or
  // a URL (`unix:///path`, `http+unix://encoded-path`, `http://127.0.0.1:7377`). NULL or empty:
  // as the environment says, else `/var/run/swipr-pid-<PID>.sock` or, where that cannot be
  // written, `$XDG_RUNTIME_DIR`, `/tmp/swipr-<uid>/` or `/dev/shm/swipr-<uid>/`.
  const char *socket;
} swipr_options;

// Which threads a recording samples.
typedef int32_t swipr_mode;

// Options of a recording: `swipr_recording_options options = SWIPR_RECORDING_OPTIONS_INIT;`, then
// the fields that matter. A field that is 0 or NULL has its default. Later versions add fields at
// the end; a library that does not know them refuses them unless they are 0.
typedef struct {
  // `sizeof(swipr_recording_options)`.
  size_t size;
  // `SWIPR_MODE_WALL` (the default) or `SWIPR_MODE_CPU`.
  swipr_mode mode;
  // Not 0: perf script text has source files and lines where they are known. Other formats that
  // have a place for lines always have them.
  int32_t lines;
  // Samples of each thread a second, from 0.0003 to 10,000. 0: 100.
  double hz;
  // A regular expression of at most 1,000 bytes: only threads whose name matches are sampled.
  // NULL: all.
  const char *threads;
  // A title of at most 1,000 bytes without control characters, where the format has a place for
  // one. NULL: none.
  const char *title;
} swipr_recording_options;

// Done.
#define SWIPR_OK 0

// A pointer is NULL that must not be, a number is out of its range, a format does not exist.
#define SWIPR_INVALID_ARGUMENT 1

// The agent runs already, or is just being stopped by another thread.
#define SWIPR_ALREADY_RUNNING 2

// The agent does not run: call `swipr_start` first.
#define SWIPR_NOT_RUNNING 3

// The agent cannot listen where it should.
#define SWIPR_CANNOT_LISTEN 4

// The recording could not be made or written.
#define SWIPR_RECORDING_FAILED 5

// The operating system refused something, or did not answer in time.
#define SWIPR_FAILED 6

// Every thread at every tick, running or waiting.
#define SWIPR_MODE_WALL 0

// Only threads that use CPU time.
#define SWIPR_MODE_CPU 1

// What variables of options begin with.
#define SWIPR_OPTIONS_INIT {sizeof(swipr_options), NULL}
#define SWIPR_RECORDING_OPTIONS_INIT {sizeof(swipr_recording_options), 0, 0, 0, NULL, NULL}

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Starts the agent in this process and waits until it listens.
//
// `options` may be NULL for the defaults. The environment variables of `docs/configuration.md`
// hold as well; `options->socket` goes before those that say where to listen, but for
// `SWIPR_LISTEN`, which opens a second place in any case. After fork the child has an agent of its
// own: where its parent has the place of `options->socket`, at a default place. An agent that is
// just being started, because it was preloaded or because of a fork, is waited for: where this
// answers `SWIPR_ALREADY_RUNNING`, recordings can be made. Any thread may call it. Waits at most 5
// seconds.
//
// Pointers:
// `options` is NULL or points to a `swipr_options` whose strings are C strings.
swipr_status swipr_start(const swipr_options *options);

// Ends all recordings, removes the socket and ends the agent's threads. Waits at most 5 seconds.
// `swipr_start` may be called again afterwards.
swipr_status swipr_stop(void);

// Copies the path (or address) on which the agent listens, with a final NUL, into `buffer` as far
// as `capacity` bytes hold it. Returns the length without the NUL; 0: the agent does not run. An
// agent that is just being started is waited for, as in `swipr_start`.
//
// Pointers:
// `buffer` is NULL or has room for `capacity` bytes.
size_t swipr_socket_path(char *buffer, size_t capacity);

// Takes `count` samples of every thread, `interval_us` microseconds apart, and writes them to the
// file `path` in the given format ("perf", "folded", "pprof", ...). Waits until the file is
// complete. The calling thread is sampled as well: it is waiting in this function.
//
// `count` is from 1 to 10 million, `interval_us` from 100 to 3,600,000,000.
//
// Pointers:
// `path` and `format` are NULL (an error) or C strings.
swipr_status swipr_record_to_file(const char *path,
                                  const char *format,
                                  uint64_t count,
                                  uint64_t interval_us);

// As `swipr_record_to_file`, with options: which threads, how often, with which title.
//
// `options` may be NULL for the defaults. `count` is from 1 to 10 million.
//
// Pointers:
// `path` and `format` are NULL (an error) or C strings; `options` is NULL or points to a
// `swipr_recording_options` whose strings are NULL or C strings.
swipr_status swipr_record_to_file_with(const char *path,
                                       const char *format,
                                       uint64_t count,
                                       const swipr_recording_options *options);

// Begins to record every thread, each `interval_us` microseconds, into the file `path`, until
// `swipr_recording_end` is called with what is stored in `*recording`, or the program ends by
// `exit`, which waits up to a second for the file, or `swipr_stop` is called; if that is at once,
// there may be no file. Does not wait for samples; an agent that is just being started is waited
// for, as in `swipr_start`. At most 8 recordings run at the same time, those of clients included:
// one more is `SWIPR_RECORDING_FAILED`.
//
// Pointers:
// `path` and `format` are NULL (an error) or C strings; `recording` is NULL (an error) or valid.
swipr_status swipr_recording_begin(const char *path,
                                   const char *format,
                                   uint64_t interval_us,
                                   uint64_t *recording);

// As `swipr_recording_begin`, with options: which threads, how often, with which title. `options`
// may be NULL for the defaults. Threads that `options->threads` matches may begin later.
//
// Pointers:
// `path` and `format` are NULL (an error) or C strings; `options` is NULL or points to a
// `swipr_recording_options` whose strings are NULL or C strings; `recording` is NULL (an error) or
// valid.
swipr_status swipr_recording_begin_with(const char *path,
                                        const char *format,
                                        const swipr_recording_options *options,
                                        uint64_t *recording);

// Ends a recording and waits until its file is complete. Recordings that started before a fork
// are the parent's: in the child there is no recording of that number.
swipr_status swipr_recording_end(uint64_t recording);

// What a status means, in a few words that stay where they are: never NULL, not to be freed. For
// what went wrong in a call, `swipr_last_error` says more. Any thread may call it at any time,
// also in a signal handler.
const char *swipr_strerror(swipr_status status);

// The version of the agent, "MAJOR.MINOR.PATCH". `SWIPR_VERSION` is that of the header.
const char *swipr_version(void);

// Copies what went wrong in this thread's last failing call, with a final NUL, into `buffer` as
// far as `capacity` bytes hold it. Returns the length without the NUL; 0: nothing went wrong yet.
//
// Pointers:
// `buffer` is NULL or has room for `capacity` bytes.
size_t swipr_last_error(char *buffer, size_t capacity);


/* Types for what dlsym(3) finds: `swipr_start_fn start = (swipr_start_fn)dlsym(library, "swipr_start");` */
typedef swipr_status (*swipr_start_fn)(const swipr_options *options);
typedef swipr_status (*swipr_stop_fn)(void);
typedef size_t (*swipr_socket_path_fn)(char *buffer, size_t capacity);
typedef swipr_status (*swipr_record_to_file_fn)(const char *path, const char *format, uint64_t count, uint64_t interval_us);
typedef swipr_status (*swipr_record_to_file_with_fn)(const char *path, const char *format, uint64_t count, const swipr_recording_options *options);
typedef swipr_status (*swipr_recording_begin_fn)(const char *path, const char *format, uint64_t interval_us, uint64_t *recording);
typedef swipr_status (*swipr_recording_begin_with_fn)(const char *path, const char *format, const swipr_recording_options *options, uint64_t *recording);
typedef swipr_status (*swipr_recording_end_fn)(uint64_t recording);
typedef const char *(*swipr_strerror_fn)(swipr_status status);
typedef const char *(*swipr_version_fn)(void);
typedef size_t (*swipr_last_error_fn)(char *buffer, size_t capacity);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* SWIPR_H */
