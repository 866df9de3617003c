//! The list of environment variables.

/// An environment variable that the agent reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Variable {
    /// Its name.
    pub name: &'static str,
    /// What holds when it is unset or empty.
    pub default: &'static str,
    /// What it means.
    pub meaning: &'static str,
}

const fn variable(name: &'static str, default: &'static str, meaning: &'static str) -> Variable {
    Variable { name, default, meaning }
}

/// The variable of the shared library's constructor.
pub const AUTOSTART: &str = "SWIPR_AUTOSTART";

pub(super) const RUNTIMES: &str = "SWIPR_RUNTIMES";
pub(super) const SYMBOL_MEMORY: &str = "SWIPR_SYMBOL_MEMORY";
pub(super) const SYMBOL_SECONDS: &str = "SWIPR_SYMBOL_SECONDS";

/// Every variable. Among those that say where the server listens, the first that is
/// set wins; `SWIPR_LISTEN` comes on top of them.
pub const VARIABLES: &[Variable] = &[
    variable(
        "SWIPR_SOCKET",
        "see below",
        "Path of the socket, absolute or in the current directory. Placeholders: `{PID}`, `{UUID}`, `{HOSTNAME}`, `{COMM}`.",
    ),
    variable(
        "SWIPR_SAMPLING_SERVER_URL",
        "",
        "Where to listen: `unix:///path`, `http+unix://percent-encoded-path` or `http://HOST[:PORT]` (port 7377 unless given).",
    ),
    variable("PROFILE_RECORDER_SERVER_URL", "", "The same; the newer name."),
    variable("SWIPR_SAMPLING_SERVER_URL_PATTERN", "", "The same with placeholders."),
    variable("PROFILE_RECORDER_SERVER_URL_PATTERN", "", "The same with placeholders; the newer name."),
    variable(
        "SWIPR_LISTEN",
        "",
        "Listen here too: `127.0.0.1:7377` for TCP, `@name` for an abstract socket (placeholders as above).",
    ),
    variable("SWIPR_LISTEN_ANY", "0", "`1` allows TCP addresses that are not loopback; needs `SWIPR_TOKEN`."),
    variable(
        "SWIPR_TOKEN",
        "",
        "Secret that TCP clients must send, as `Authorization: Bearer …` or `?token=…`: letters, digits and `-._~`.",
    ),
    variable(
        "SWIPR_ALLOW_UID",
        "",
        "User ids, separated by commas, that may connect besides our own and root.",
    ),
    variable(
        RUNTIMES,
        "all",
        "Languages whose functions are shown between the native ones: `all`, `off`, or a list such as `python,perl`, of `python` (or `cpython`), `perl`, `php`, `ruby`, `javascript` (or `node`, `v8`), `java`.",
    ),
    variable(
        "SWIPR_FOLLOW",
        "all",
        "Which children are profiled: `all`, `exec` (programs that are executed, no copies made by fork), `none` (the library's name is taken from their `LD_PRELOAD`).",
    ),
    variable(
        "SWIPR_ONLY",
        "",
        "Profile only executables that match one of these patterns, separated by commas: `nginx,/opt/*/bin/worker-?`. `*` stands for any characters, `?` for one, all others for themselves. Without a slash the file's name counts, else its whole path.",
    ),
    variable(
        "SWIPR_SKIP",
        "",
        "Do not profile executables that match one of these patterns. Processes with the argument `--type=zygote` (Chromium's) are never profiled.",
    ),
    variable(
        "SWIPR_CONTINUOUS",
        "",
        "`49hz,60s`, or `1` for the same: the last 60 seconds are always kept, sampled 49 times a second, for `GET /last?seconds=30` after something has happened.",
    ),
    variable(
        "SWIPR_OUTPUT",
        "",
        "A file into which the program's whole life is written, 100 samples a second, when it ends: `/tmp/profile.%p.pb.gz`. `%p`, the process id, must be in it: children have files of their own. The suffix says the format. The program's end may wait up to 2 seconds for it; what is not complete (after a signal, too) is named `.part`.",
    ),
    variable(
        "SWIPR_RECORDER",
        "",
        "Set by `swipr run`: a process id, or `all:` and one. A process whose parent that is (`all:`: any, also after `fork`) waits at its start, at most 10 s and while that process is there, until it is recorded, and at `exit` or `_exit`, at most 2 s, until recordings have what was sampled.",
    ),
    variable(
        SYMBOL_MEMORY,
        "64",
        "Memory for names and debug information, in MiB, from 4. What does not fit is dropped and read again, or left out: names without lines.",
    ),
    variable(
        SYMBOL_SECONDS,
        "20",
        "CPU time, in seconds, that a recording may take to look up lines and inlined functions; further frames have names only, and are counted. `0`: no lines.",
    ),
    variable(
        "SWIPR_LOG",
        "0",
        "`1` or `stderr`: the agent writes its log lines to stderr, as long as that is the file that it was at the start.",
    ),
    variable(
        AUTOSTART,
        "0",
        "`1`: the agent starts also where `LD_PRELOAD` does not name it, as with `/etc/ld.so.preload`.",
    ),
    variable(
        "XDG_RUNTIME_DIR",
        "",
        "Where the socket goes if `/var/run` is not writable (set by the system, not by you).",
    ),
];
