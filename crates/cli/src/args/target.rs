//! Which process a verb is about.

use clap::Args;

/// A process, given by its id, its name or its socket; as the first argument or, by habit, with -p.
#[derive(Debug, Args)]
pub struct Target {
    /// The process: its id, its name, or its agent's socket (a path, @name, HOST:PORT)
    #[arg(value_name = "PID|NAME|SOCKET", required_unless_present = "pid")]
    target: Option<String>,
    /// The process's id
    #[arg(short, long, value_name = "PID", conflicts_with = "target")]
    pid: Option<u32>,
}

impl Target {
    /// What was given.
    pub fn text(&self) -> String {
        self.pid.map(|pid| pid.to_string()).or_else(|| self.target.clone()).unwrap_or_default()
    }
}

/// A process that may be left out.
#[derive(Debug, Args)]
pub struct MaybeTarget {
    /// The process: its id, its name, or its agent's socket
    #[arg(value_name = "PID|NAME|SOCKET")]
    target: Option<String>,
    /// The process's id
    #[arg(short, long, value_name = "PID", conflicts_with = "target")]
    pid: Option<u32>,
}

impl MaybeTarget {
    /// What was given, if anything.
    pub fn given(&self) -> Option<String> {
        self.pid.map(|pid| pid.to_string()).or_else(|| self.target.clone())
    }
}
