//! A sampling profiler for the process that it runs in: stacks of all threads, with names, lines
//! and inlined functions.
//!
//! ```
//! use swipr::{Mode, Profiler};
//! use std::fs::File;
//! # let folder = std::env::temp_dir().join(format!("swipr-root-example-{}", std::process::id()));
//! # std::fs::create_dir_all(&folder)?;
//! # std::env::set_current_dir(&folder)?;
//! # let work = || (0..50_000_000u64).fold(0, |sum, n| std::hint::black_box(sum ^ n));
//!
//! let profiler = Profiler::builder().hz(1000).mode(Mode::Cpu).start()?;
//! work();
//! let report = profiler.stop()?;
//!
//! println!("{report:?}"); // the stacks, the most frequent first
//! report.flamegraph(&mut File::create("flamegraph.svg")?)?;
//! report.pprof(&mut File::create("profile.pb.gz")?)?;
//! report.write("html", &mut File::create("profile.html")?)?;
//! # std::fs::remove_dir_all(&folder)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`Profiler::builder`] says what is recorded and how often. A [`Report`] can be inspected,
//! changed and written in any format; [`Profiler::report`] makes one while the recording runs.
//!
//! All threads of the process are sampled, and their stacks are complete without frame pointers.
//! Nothing is sampled before [`Builder::start`]. The crate brings no constructor, no global
//! allocator and no panic hook. It is made for Linux on x86-64.
//!
//! Features: `criterion` has a profiler for criterion's benchmarks, `BenchProfiler`. The others
//! are for tests, and for the shared library, `libswipr.so`, which profiles programs that cannot be
//! changed.

// Modules that the documentation leaves out are for this repository's tests, benches and tools.

mod agent;
mod agent_threads;
mod autostart;
mod channel;
#[doc(hidden)]
pub mod config;
mod counters;
#[doc(hidden)]
pub mod for_library;
#[cfg(test)]
#[path = "../../../tests/generated.rs"]
mod generated;
mod histogram;
#[cfg(feature = "fault-injection")]
mod injected;
mod interpreters;
mod jit;
mod last_thread;
mod lifecycle;
#[doc(hidden)]
pub mod mappings;
mod output;
mod profiler;
mod registered_frames;
mod sample_queue;
mod sampler;
mod signal_exclusion;
mod stack;
mod stop_time;
mod symbol_server;
mod thread_data;
mod thread_start;
mod wait_for_recorder;
mod writer;

#[cfg(feature = "criterion")]
pub use profiler::BenchProfiler;
pub use profiler::{Builder, Error, Frames, Key, Profiler, Report};
#[doc(inline)]
pub use swipr_formats::model::{
    Cost, Frame, FrameKind, Function, Mode, Module, Stack, State, Summary, Thread,
};
use swipr_os::atomic;
