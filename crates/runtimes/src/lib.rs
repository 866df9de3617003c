//! The frames of interpreters: functions of which native stacks show only the interpreter's own
//! code.
//!
//! Two parts. What reads a thread's chain of frames ([`runtime::Runtime::walk`], into a [`room`],
//! through [`blocks`]) may run in a signal handler: no allocation, no panic, no libc, no lock;
//! `link-gate/` of `swipr-unwind` proves it. All else, behind the feature `names`, is for the
//! agent's own threads: [`code`] (what a function is called, and its lines) and [`merge`].
//!
//! The thread whose chain is read stands still: it is in the handler, or its CPU clock proves it.
//! What is read may be wrong all the same, where the interpreter was interrupted in the middle of a
//! change: every structure is checked, and a chain that fails is no chain.
#![cfg_attr(not(feature = "names"), no_std)]

pub mod blocks;
#[cfg(feature = "names")]
pub mod code;
mod content;
mod hash;
pub mod java;
pub mod known;
#[cfg(feature = "names")]
pub mod lines;
#[cfg(feature = "names")]
pub mod merge;
pub mod perl;
pub mod php;
pub mod python;
pub mod reader;
pub mod room;
pub mod ruby;
pub mod runtime;
pub mod v8;
