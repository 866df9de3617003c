//! `swipr push`'s options.

use super::span::{rate, recording_span};
use super::{Target, percent};
use clap::{Args, ValueEnum};
use std::time::Duration;

/// How a store wants its profiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Protocol {
    /// Pyroscope's /ingest
    #[value(name = "pyroscope", alias = "ingest")]
    Ingest,
    /// Pyroscope's push API, push.v1.PusherService
    #[value(name = "pyroscope-push", alias = "push")]
    Push,
    /// OTLP profiles over HTTP
    Otlp,
}

impl Protocol {
    /// The port that is meant where none is given.
    pub fn port(self) -> u16 {
        match self {
            Protocol::Ingest | Protocol::Push => 4040,
            Protocol::Otlp => 4318,
        }
    }
}

/// `swipr push`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  swipr push 1234 --url http://localhost:4040 --service shop
                                              to Pyroscope, every ten seconds
  swipr push 1234 --url http://localhost:4318 --protocol otlp --label env=test
                                              to an OpenTelemetry collector
  swipr push nginx --url http://localhost:4040 --protocol pyroscope-push --count 1 -d 5
                                              once, five seconds")]
pub struct Push {
    /// Which process.
    #[command(flatten)]
    pub target: Target,
    /// The store: http://HOST[:PORT][/PATH]; to https:// the installed curl sends
    #[arg(short, long, value_name = "URL")]
    pub url: String,
    /// How it wants profiles
    #[arg(long, value_enum, value_name = "PROTOCOL", default_value_t = Protocol::Ingest)]
    pub protocol: Protocol,
    /// What the profiles are called (default: the process's name)
    #[arg(long, value_name = "NAME", alias = "name")]
    pub service: Option<String>,
    /// A label of all profiles; may be given often
    #[arg(short, long, value_name = "KEY=VALUE", value_parser = |text: &str| pair(text, '='))]
    pub label: Vec<(String, String)>,
    /// A header of all requests, for instance for authorization; may be given often
    #[arg(long, value_name = "NAME: VALUE", value_parser = |text: &str| pair(text, ':'))]
    pub header: Vec<(String, String)>,
    /// How long each profile is
    #[arg(short, long, value_name = "TIME", value_parser = recording_span, allow_negative_numbers = true, default_value = "10s", alias = "interval")]
    pub duration: Duration,
    /// Samples a second of each thread
    #[arg(short, long, value_name = "HZ", default_value_t = 100, value_parser = rate, allow_negative_numbers = true)]
    pub rate: u32,
    /// Include threads that wait, by the clock on the wall
    #[arg(short, long)]
    pub idle: bool,
    /// Only threads whose name matches
    #[arg(long, value_name = "REGEX", value_parser = super::pattern)]
    pub thread_name: Option<String>,
    /// End after so many recordings
    #[arg(long, value_name = "N")]
    pub count: Option<u64>,
    /// Keep so many profiles while the store cannot be reached; the oldest go first
    #[arg(long, value_name = "N", default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub queue: u32,
    /// Say nothing but errors
    #[arg(short, long)]
    pub quiet: bool,
}

impl Push {
    /// The query for an agent.
    pub fn query(&self) -> String {
        let mode = if self.idle { "wall" } else { "cpu" };
        let mut query = format!("seconds={}&hz={}&mode={mode}", self.duration.as_secs_f64(), self.rate);
        if let Some(regex) = &self.thread_name {
            query.push_str(&format!("&threads={}&may_come=true", percent(regex)));
        }
        query
    }
}

fn pair(text: &str, between: char) -> Result<(String, String), String> {
    let (name, value) = text.split_once(between).ok_or_else(|| format!("there is no {between} in it"))?;
    let (name, value) = (name.trim(), value.trim());
    if name.is_empty() || text.contains(char::is_control) {
        return Err(format!("write NAME{between}VALUE"));
    }
    Ok((name.to_owned(), value.to_owned()))
}
