//! A recording as text or bytes. This crate knows no address of the process it
//! runs in and opens no file: a sample is a value, a format turns values into bytes.
//!
//! [`FORMATS`] is the one list of formats; the server, the command line and the
//! documentation are made from it. Everything a sample names (functions, files,
//! threads) comes from the profiled program and is treated as hostile: no name can
//! add, remove or change a sample, a thread or a frame of the output.

#![forbid(unsafe_code)]

mod aggregate;
mod category;
mod clock;
mod decimal;
mod diff;
mod display;
mod dump;
mod firefox;
mod flight_recorder;
mod folded;
mod format;
mod go_text;
mod gperftools;
mod html;
mod intern;
mod jit_tier;
mod json;
mod json_dump;
mod kept;
mod list;
mod live;
pub mod model;
pub mod names;
mod order;
mod page_data;
mod passing;
mod perf_script;
mod picture;
mod pprof;
pub mod protobuf;
mod ptr_cache;
mod raw;
mod raw_tree;
mod speedscope;
mod state;
mod stats;
mod svg;
pub mod syscalls;
mod template;
mod text_frames;
mod threads;
mod timeline;
mod tree;

pub use clock::utc;
pub use decimal::Decimal;
pub use diff::{Diff, ReadError, Stacks};
pub use firefox::debug_id;
pub use flight_recorder::{FlightRecord, FlightRecorder};
pub use format::{Format, Names, Options, Weight};
pub use go_text::{GOROUTINE_STACKS, GOROUTINES};
pub use gperftools::GPERFTOOLS;
pub use kept::{Entry, MemoryRecording};
pub use list::{FORMATS, FormatInfo, Selection, find, of_file};
pub use live::{LIVE_LINES, live_page};
pub use ptr_cache::PtrCache;
pub use stats::{read_stats_line, stats_line};
pub use template::LIVE_POLICY;
pub use text_frames::ELIDED;
pub use threads::THREADS;
