//! Every environment variable, read once at start.
//!
//! [`VARIABLES`] is the one list; `docs/configuration.md` is tested against it.
//! Not here: opening sockets (`listen.rs`), or reading a variable anywhere else.

mod continuous;
mod place;
mod programs;
mod reader;
mod recorder;
mod variables;

pub use continuous::{Continuous, LifeFile};
pub use programs::{Follow, Programs};
use reader::VariableReader;
pub use recorder::WaitingFor;
pub use variables::{AUTOSTART, VARIABLES, Variable};
use variables::{SYMBOL_MEMORY, SYMBOL_SECONDS};

use crate::interpreters::Wanted;
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;
use swipr_os::log::Log;
use swipr_server::listen::Place;

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
    /// Whether the default places are tried if another process listens at the main one: children
    /// inherit a variable, and by fork all else, and then have the same main place.
    pub main_is_inherited: bool,
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
    pub waiting_recorder: Option<WaitingFor>,
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
        Config::parse_with_socket(socket, &|name| std::env::var_os(name))
    }

    /// Reads the variables through `lookup`. An empty value is an unset one.
    pub fn parse(lookup: impl Fn(&str) -> Option<OsString>) -> Result<Config, ConfigError> {
        VariableReader { lookup: &lookup }.choice(AUTOSTART, &["0", "1"])?;
        Config::parse_with_socket(None, &lookup).map(|config| Config { main_is_inherited: true, ..config })
    }

    fn parse_with_socket(
        socket: Option<&str>,
        lookup: &dyn Fn(&str) -> Option<OsString>,
    ) -> Result<Config, ConfigError> {
        let reader = VariableReader { lookup };
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
            main_is_inherited: false,
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
            waiting_recorder: reader.waiting_recorder()?,
            symbol_memory_mib: reader.number(SYMBOL_MEMORY, 4..=1 << 20, "64")? as usize,
            symbol_time: Duration::from_secs(reader.number(SYMBOL_SECONDS, 0..=86_400, "20")?),
            log: reader.log()?,
        })
    }
}

/// A number of digits alone: `str::parse` takes a sign, too.
fn digits(text: &str) -> Option<u64> {
    text.parse().ok().filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()))
}

fn is_token(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._~".contains(&b))
}

#[cfg(test)]
mod tests;
