//! swipr: a sampling profiler that lives inside the process it profiles.
//!
//! The way of a sample: [`sampler`] sweeps over the threads, `swipr_unwind` walks their stacks, a
//! [`writer`] gives the addresses names and writes them in the recording's format into a [`pipe`], whose
//! other end the [`server`] sends to the client. `ARCHITECTURE.md` has the picture and the invariants.

pub mod agent;
pub mod agent_threads;
#[cfg(feature = "preload")]
mod alternate_stacks;
#[cfg(feature = "preload")]
mod atfork_registration;
mod atomic;
mod awaited;
mod begun;
#[cfg(all(feature = "preload", target_os = "linux", target_arch = "x86_64"))]
mod calls_alone;
pub mod channel;
#[cfg(feature = "preload")]
mod children;
pub mod config;
#[cfg(feature = "preload")]
mod constructor;
pub mod counters;
pub mod ffi;
mod fork;
#[cfg(feature = "preload")]
mod frame_registration;
#[cfg(feature = "preload")]
pub mod heap;
pub mod histogram;
mod host_end;
#[cfg(feature = "fault-injection")]
mod injected;
mod knock;
mod last_error;
pub mod life;
pub mod listen;
mod locks;
pub mod log;
pub mod made_code;
pub mod mappings;
#[cfg(feature = "preload")]
mod next;
pub mod not_asked;
mod off;
pub mod output;
pub mod pipe;
pub mod platform;
pub mod profiler;
pub mod recording;
pub mod registered_frames;
#[cfg(all(feature = "preload", target_os = "linux", target_arch = "x86_64"))]
mod rights_given_up;
pub mod sample_queue;
pub mod sampler;
pub mod server;
pub mod stack;
pub mod symbol_server;
mod text;
mod unasked;
pub mod writer;

pub use profiler::Profiler;
