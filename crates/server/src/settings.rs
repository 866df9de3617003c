//! Settings of the server: which users may connect, and for how long.

use std::time::Duration;
use swipr_os::log::Log;

/// What the server needs of the configuration.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// What TCP clients must send.
    pub token: Option<String>,
    /// Users that may connect besides the process's own and root.
    pub allowed_uids: Vec<u32>,
    /// Whether the sockets are in the host's descriptor table. Nothing tells the server then that
    /// the host has closed them.
    pub shares_descriptors: bool,
    /// Whether log lines are wanted.
    pub log: Log,
    /// How long and how many.
    pub limits: Limits,
}

/// How long clients may take, and how many there may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// For a request, from its first byte to the end of its head, and again to the
    /// end of its body; for the first byte after connecting.
    pub head: Duration,
    /// Between an answer and the next request.
    pub idle: Duration,
    /// Without taking a byte of an answer.
    pub stall: Duration,
    /// For closing after the last answer.
    pub linger: Duration,
    /// Connections at once.
    pub connections: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            head: Duration::from_secs(10),
            idle: Duration::from_secs(60),
            stall: Duration::from_secs(30),
            linger: Duration::from_secs(5),
            connections: 64,
        }
    }
}
