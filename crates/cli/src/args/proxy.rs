//! `swipr proxy`'s options.

use super::Target;
use clap::Args;

/// `swipr proxy`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  swipr proxy 1234 --port 6060
  go tool pprof -http=: 'http://127.0.0.1:6060/debug/pprof/profile?seconds=10'

Only programs of the same user may ask, from this machine; web pages may not.")]
pub struct Proxy {
    /// Which process.
    #[command(flatten)]
    pub target: Target,
    /// The port on loopback; 0 is any that is free
    #[arg(short = 'P', long, default_value_t = 0)]
    pub port: u16,
}
