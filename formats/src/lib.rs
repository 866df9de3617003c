//! A recording as text or bytes. This crate knows no address of the process it
//! runs in and opens no file: a sample is a value, a format turns values into bytes.
//!
//! [`FORMATS`] is the one list of formats; the server, the command line and the
//! documentation are made from it. Everything a sample names (functions, files,
//! threads) comes from the profiled program and is treated as hostile: no name can
//! add, remove or change a sample, a thread or a frame of the output.

#![forbid(unsafe_code)]

mod aggregate;
mod clock;
mod dump;
mod entries;
mod folded;
mod format;
mod intern;
mod json;
mod json_dump;
mod kept;
mod list;
pub mod model;
pub mod names;
mod perf_script;
mod pprof;
pub mod protobuf;
mod raw;
mod recent;
mod state;
mod stats;
pub mod syscalls;
mod tier;

pub use format::{Format, Names, Options, Weight};
pub use kept::{Entry, Kept};
pub use list::{FORMATS, FormatInfo, Selection, find};
pub use recent::Recent;
pub use stats::stats_line;
pub use tier::{Tier, tier};
