//! Every environment variable, read once at start.
//!
//! [`VARIABLES`] is the one list; `docs/configuration.md` is tested against it.
//! Not here: opening sockets (`listen.rs`), or reading a variable anywhere else.

mod continuous;
mod place;
mod programs;
mod recorder;

pub use continuous::{Continuous, LifeFile};
pub use programs::{Follow, Programs};
pub use recorder::WaitingFor;

use crate::interpreters::Wanted;
use std::ffi::OsString;
use std::fmt;
use std::ops::RangeInclusive;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::Duration;
use swipr_os::log::Log;
use swipr_server::listen::Place;

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

const RUNTIMES: &str = "SWIPR_RUNTIMES";
const SYMBOL_MEMORY: &str = "SWIPR_SYMBOL_MEMORY";
const SYMBOL_SECONDS: &str = "SWIPR_SYMBOL_SECONDS";

/// Every variable. Among those that say where the server listens, the first that is
/// set wins; `SWIPR_LISTEN` comes on top of them.
pub const VARIABLES: &[Variable] = &[
    variable(
        "SWIPR_SOCKET",
        "see below",
        "Path of the socket. Placeholders: `{PID}`, `{UUID}`, `{HOSTNAME}`, `{COMM}`.",
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
        "Secret that TCP clients must send, as `Authorization: Bearer …` or `?token=…`.",
    ),
    variable(
        "SWIPR_ALLOW_UID",
        "",
        "User ids, separated by commas, that may connect besides our own and root.",
    ),
    variable(
        RUNTIMES,
        "all",
        "Languages whose functions are shown between the native ones: `all`, `off`, or a list such as `python,perl`, of `python` (or `cpython`), `perl`, `php`, `ruby`, `javascript` (or `node`, `v8`).",
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
        "A file into which the program's whole life is written, 100 samples a second, when it ends: `/tmp/profile.%p.pb.gz`. `%p` is the process id; the suffix says the format. The program's end may wait up to 2 seconds for it; what is not complete (after `_exit` or a signal, too) is named `.part`.",
    ),
    variable(
        "SWIPR_RECORDER",
        "",
        "Set by `swipr run`: a process id, or `all:` and one. A process whose parent that is (`all:`: any, also after `fork`) waits at its start, at most 10 s and while that process is there, until it is recorded, and at `exit`, at most 2 s, until recordings have what was sampled.",
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
    variable("SWIPR_LOG", "0", "`1` or `stderr`: the agent writes its log lines to stderr."),
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

/// The name, in errors, of the place that the C interface was given.
const SOCKET_OPTION: &str = "options->socket";

/// Where the server listens unless a variable says otherwise, in docs' words.
pub const DEFAULT_PLACES: &[&str] = &[
    "/var/run/swipr-pid-{PID}.sock",
    "$XDG_RUNTIME_DIR/swipr-pid-{PID}.sock",
    "/tmp/swipr-<uid>/swipr-pid-{PID}.sock",
    "/dev/shm/swipr-<uid>/swipr-pid-{PID}.sock",
];

/// The agent's configuration, from the environment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Config {
    /// Where to listen; never empty, the main place first.
    pub places: Vec<Place>,
    /// `$XDG_RUNTIME_DIR`, for [`Place::Default`].
    pub runtime_directory: Option<PathBuf>,
    /// What TCP clients must send.
    pub token: Option<String>,
    /// Users that may connect besides the process's own and root.
    pub allowed_uids: Vec<u32>,
    /// The interpreters whose frames are read.
    pub interpreters: Wanted,
    /// Which children have an agent.
    pub follow: Follow,
    /// Which executables have an agent, where the library is preloaded.
    pub programs: Programs,
    /// The flight recorder.
    pub continuous: Option<Continuous>,
    /// Where the process's whole life is written.
    pub life_file: Option<LifeFile>,
    /// Which processes wait for their recording to begin.
    pub awaited: Option<WaitingFor>,
    /// Memory for names, in MiB.
    pub symbol_memory_mib: usize,
    /// How long a recording's writer may run to find lines.
    pub symbol_time: Duration,
    /// Whether log lines are wanted.
    pub log: Log,
}

/// A variable with a value that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// Which variable; or `options->socket`, if the C interface was given the value.
    pub variable: &'static str,
    /// Its value (bytes that are no UTF-8 replaced); empty for secrets.
    pub value: String,
    /// What is wrong with it.
    pub reason: String,
    /// A value that would do.
    pub example: &'static str,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ConfigError { variable, value, reason, example } = self;
        write!(f, "cannot use {variable}={value}: {reason}; ")?;
        write!(f, "for example {variable}={example}")
    }
}

impl std::error::Error for ConfigError {}

impl Config {
    /// Reads the variables from this process's environment. Environment access is
    /// not synchronised with a host that changes it from C: call this at start.
    pub fn from_environment() -> Result<Config, ConfigError> {
        Config::parse(|name| std::env::var_os(name))
    }

    /// The same, but `socket` is the main place: a path with placeholders, or a URL. The variables
    /// for the main place are ignored then. An empty text is ignored.
    pub fn with_socket(socket: Option<&str>) -> Result<Config, ConfigError> {
        Config::parse_with_socket(socket, |name| std::env::var_os(name))
    }

    /// Reads the variables through `lookup`. An empty value is an unset one.
    pub fn parse(lookup: impl Fn(&str) -> Option<OsString>) -> Result<Config, ConfigError> {
        VariableReader { lookup: &lookup }.choice(AUTOSTART, &["0", "1"])?;
        Config::parse_with_socket(None, lookup)
    }

    fn parse_with_socket(
        socket: Option<&str>,
        lookup: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Config, ConfigError> {
        let reader = VariableReader { lookup: &lookup };
        let token = reader.text("SWIPR_TOKEN", "a-long-random-word")?;
        if token.as_deref().is_some_and(|token| !is_token(token)) {
            return Err(ConfigError {
                variable: "SWIPR_TOKEN",
                value: String::new(),
                reason: "only letters, digits and -._~ may be in it".to_owned(),
                example: "a-long-random-word",
            });
        }
        let any = reader.choice("SWIPR_LISTEN_ANY", &["0", "1"])? == Some(1);
        let exposure = match (any, token.is_some()) {
            (true, true) => place::Exposure::Anywhere,
            (true, false) => place::Exposure::NeedsToken,
            (false, _) => place::Exposure::Loopback,
        };
        let main = match socket.filter(|socket| !socket.is_empty()) {
            Some(socket) => reader.given_place(socket, exposure)?,
            None => reader.main_place(exposure)?,
        };
        let mut places = vec![main];
        if let Some(text) = reader.text("SWIPR_LISTEN", place::LISTEN_EXAMPLE)? {
            let place = place::from_listen(&text, exposure);
            places.push(reader.check("SWIPR_LISTEN", &text, place, place::LISTEN_EXAMPLE)?);
        }
        Ok(Config {
            places,
            runtime_directory: reader.value("XDG_RUNTIME_DIR").map(PathBuf::from),
            token,
            allowed_uids: reader.uids()?,
            interpreters: reader.interpreters()?,
            follow: Follow::named(reader.choice("SWIPR_FOLLOW", &Follow::NAMES)?.unwrap_or(0)),
            programs: Programs { only: reader.patterns("SWIPR_ONLY")?, skip: reader.patterns("SWIPR_SKIP")? },
            continuous: match reader.text("SWIPR_CONTINUOUS", continuous::CONTINUOUS_EXAMPLE)? {
                Some(text) => {
                    let parsed = Continuous::parse(&text);
                    reader.check("SWIPR_CONTINUOUS", &text, parsed, continuous::CONTINUOUS_EXAMPLE)?
                }
                None => None,
            },
            life_file: match reader.text("SWIPR_OUTPUT", continuous::OUTPUT_EXAMPLE)? {
                Some(text) => {
                    let parsed = LifeFile::parse(&text);
                    Some(reader.check("SWIPR_OUTPUT", &text, parsed, continuous::OUTPUT_EXAMPLE)?)
                }
                None => None,
            },
            awaited: reader.awaited()?,
            symbol_memory_mib: reader.number(SYMBOL_MEMORY, 4..=1 << 20, "64")? as usize,
            symbol_time: Duration::from_secs(reader.number(SYMBOL_SECONDS, 0..=86_400, "20")?),
            log: reader.log()?,
        })
    }
}

fn is_token(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._~".contains(&b))
}

struct VariableReader<'a> {
    lookup: &'a dyn Fn(&str) -> Option<OsString>,
}

impl VariableReader<'_> {
    fn value(&self, variable: &str) -> Option<OsString> {
        (self.lookup)(variable).filter(|value| !value.is_empty())
    }

    fn text(&self, variable: &'static str, example: &'static str) -> Result<Option<String>, ConfigError> {
        let Some(value) = self.value(variable) else {
            return Ok(None);
        };
        match value.into_string() {
            Ok(text) => Ok(Some(text)),
            Err(value) => Err(ConfigError {
                variable,
                value: value.to_string_lossy().into_owned(),
                reason: "it is not UTF-8".to_owned(),
                example,
            }),
        }
    }

    fn check<T>(
        &self,
        variable: &'static str,
        value: &str,
        parsed: Result<T, String>,
        example: &'static str,
    ) -> Result<T, ConfigError> {
        parsed.map_err(|reason| ConfigError { variable, value: value.to_owned(), reason, example })
    }

    /// The index of the value in `values`.
    fn choice(&self, variable: &'static str, values: &[&'static str]) -> Result<Option<usize>, ConfigError> {
        let example = if values.contains(&"1") { "1" } else { values.first().copied().unwrap_or_default() };
        let Some(text) = self.text(variable, example)? else {
            return Ok(None);
        };
        let index = values.iter().position(|value| *value == text);
        let index = index.ok_or_else(|| format!("it must be one of {}", values.join(", ")));
        self.check(variable, &text, index, example).map(Some)
    }

    /// What `options->socket` of `swipr_start` says.
    fn given_place(&self, socket: &str, exposure: place::Exposure) -> Result<Place, ConfigError> {
        let place = match socket.contains("://") {
            true => place::from_url(socket, place::Braces::AreText, exposure),
            false => place::from_path(socket.as_bytes()),
        };
        self.check(SOCKET_OPTION, socket, place, place::SOCKET_EXAMPLE)
    }

    fn main_place(&self, exposure: place::Exposure) -> Result<Place, ConfigError> {
        if let Some(value) = self.value("SWIPR_SOCKET") {
            let place = place::from_path(value.as_bytes());
            let shown = value.to_string_lossy();
            return self.check("SWIPR_SOCKET", &shown, place, place::SOCKET_EXAMPLE);
        }
        let literal = ["SWIPR_SAMPLING_SERVER_URL", "PROFILE_RECORDER_SERVER_URL"];
        for variable in literal {
            if let Some(url) = self.text(variable, place::URL_EXAMPLE)? {
                let place = place::from_url(&url, place::Braces::AreText, exposure);
                return self.check(variable, &url, place, place::URL_EXAMPLE);
            }
        }
        let patterns = ["SWIPR_SAMPLING_SERVER_URL_PATTERN", "PROFILE_RECORDER_SERVER_URL_PATTERN"];
        for variable in patterns {
            if let Some(url) = self.text(variable, place::URL_PATTERN_EXAMPLE)? {
                let place = place::from_url(&url, place::Braces::ArePlaceholders, exposure);
                return self.check(variable, &url, place, place::URL_PATTERN_EXAMPLE);
            }
        }
        Ok(Place::Default)
    }

    fn uids(&self) -> Result<Vec<u32>, ConfigError> {
        let Some(text) = self.text("SWIPR_ALLOW_UID", "1000,1001")? else {
            return Ok(Vec::new());
        };
        let uids = text.split(',').map(|uid| {
            let uid = uid.trim();
            uid.parse::<u32>().map_err(|_| format!("\"{uid}\" is not a user id"))
        });
        self.check("SWIPR_ALLOW_UID", &text, uids.collect(), "1000,1001")
    }

    fn awaited(&self) -> Result<Option<WaitingFor>, ConfigError> {
        let Some(text) = self.text("SWIPR_RECORDER", "all:1234")? else {
            return Ok(None);
        };
        self.check("SWIPR_RECORDER", &text, WaitingFor::parse(&text), "all:1234").map(Some)
    }

    fn log(&self) -> Result<Log, ConfigError> {
        Ok(match self.choice("SWIPR_LOG", &["0", "1", "stderr"])? {
            Some(1 | 2) => Log::Stderr,
            _ => Log::Off,
        })
    }

    fn interpreters(&self) -> Result<Wanted, ConfigError> {
        let Some(text) = self.text(RUNTIMES, "python,perl")? else {
            return Ok(Wanted::default());
        };
        self.check(RUNTIMES, &text, Wanted::parse(&text), "python,perl")
    }

    fn patterns(&self, variable: &'static str) -> Result<Vec<String>, ConfigError> {
        let text = self.text(variable, "nginx,/opt/*")?.unwrap_or_default();
        let patterns = text.split(',').map(str::trim).filter(|pattern| !pattern.is_empty());
        Ok(patterns.map(str::to_owned).collect())
    }

    fn number(
        &self,
        variable: &'static str,
        range: RangeInclusive<u64>,
        default: &'static str,
    ) -> Result<u64, ConfigError> {
        let text = self.text(variable, default)?.unwrap_or_else(|| default.to_owned());
        let number = text.parse().ok().filter(|number| range.contains(number));
        let number = number.ok_or_else(|| format!("it must be from {} to {}", range.start(), range.end()));
        self.check(variable, &text, number, default)
    }
}

#[cfg(test)]
mod tests;
