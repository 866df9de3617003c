//! The parameters of recordings: one list, for queries, for the JSON body, and for the help. Not
//! here: which route takes which of them (`routes.rs`).

mod list;
mod texts;

pub(crate) use list::{PARAMETERS, Parameter, is_listed};
pub use texts::{regex, title};

use super::values::MAX_DURATION_NS;
use crate::recording::{
    Filter, Length, Request, SampleSource, ShownFrames, StateFilter, Symbolize, WriterTask,
};
use std::time::Duration;
use swipr_formats::model::Mode;
use swipr_formats::{FormatInfo, Names, Options, Selection, Weight};

/// The parameters that a client has given so far; `None`: not given.
#[derive(Debug, Default)]
pub(crate) struct RecordingParams {
    pub(crate) interval_ns: Option<u64>,
    pub(crate) ticks: Option<u64>,
    pub(crate) duration_ns: Option<u64>,
    pub(crate) id: Option<String>,
    pub(crate) format: Option<&'static FormatInfo>,
    pub(crate) mode: Option<Mode>,
    source: Option<SampleSource>,
    threads: Option<regex_lite::Regex>,
    tids: Option<Vec<u32>>,
    may_come: Option<bool>,
    states: Option<Vec<StateFilter>>,
    include: Option<regex_lite::Regex>,
    exclude: Option<regex_lite::Regex>,
    symbolize: Option<Symbolize>,
    names: Option<Names>,
    lines: Option<bool>,
    inline: Option<bool>,
    frames: Option<ShownFrames>,
    max_depth: Option<u64>,
    title: Option<String>,
    merge_threads: Option<bool>,
    weight: Option<Weight>,
    leaf_states: Option<bool>,
    pub(crate) compat: Option<bool>,
}

/// What holds for things a client did not mention.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Defaults {
    pub(crate) length: Length,
    pub(crate) mode: Mode,
    pub(crate) format: &'static str,
}

impl RecordingParams {
    /// Sets a parameter of that name; the error says what is wrong with the value.
    pub(crate) fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        let known = PARAMETERS.iter().find(|parameter| parameter.name == name);
        let known = known.ok_or_else(|| "there is no such parameter".to_owned())?;
        (known.set)(self, value)
    }

    /// The request; the error says which parameters do not go together.
    pub(crate) fn into_request(self, defaults: Defaults) -> Result<Request, String> {
        let interval_ns = self.interval_ns.unwrap_or(10_000_000);
        let length = match (self.ticks, self.duration_ns) {
            (Some(_), Some(_)) => {
                return Err("both a time and a number of samples are given: only one can hold".to_owned());
            }
            (Some(ticks), None) => Length::Ticks(ticks),
            (None, Some(ns)) => Length::Time(Duration::from_nanos(ns)),
            (None, None) => defaults.length,
        };
        match length {
            Length::Ticks(ticks) if ticks.saturating_mul(interval_ns) > MAX_DURATION_NS => {
                return Err(format!(
                    "{ticks} samples every {:?} take longer than 24 h, which is the most",
                    Duration::from_nanos(interval_ns)
                ));
            }
            _ => {}
        }
        let format = match self.format {
            Some(format) => format,
            None => texts::format(defaults.format)?,
        };
        let standard = Options::default();
        Ok(Request {
            interval: Duration::from_nanos(interval_ns),
            length,
            id: self.id,
            mode: self.mode.unwrap_or(defaults.mode),
            source: self.source.unwrap_or_default(),
            format: Selection {
                format,
                options: Options {
                    names: self.names.unwrap_or(standard.names),
                    lines: self.lines.unwrap_or(standard.lines),
                    inline: self.inline.unwrap_or(standard.inline),
                    merge_threads: self.merge_threads.unwrap_or(standard.merge_threads),
                    compat: self.compat.unwrap_or(standard.compat),
                    max_depth: self.max_depth.and_then(|n| usize::try_from(n).ok()),
                    title: self.title,
                    weight: self.weight,
                    states: self.leaf_states.unwrap_or(standard.states),
                    snapshot: standard.snapshot,
                },
            },
            threads: self.threads,
            filter: Filter {
                tids: self.tids.unwrap_or_default(),
                states: self.states.unwrap_or_default(),
                include: self.include,
                exclude: self.exclude,
                may_come: self.may_come.unwrap_or_default(),
            },
            purpose: WriterTask::Samples,
            symbolize: self.symbolize.unwrap_or_default(),
            frames: self.frames.unwrap_or_default(),
        })
    }
}
