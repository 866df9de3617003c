//! What swipr needs of the operating system:
//!
//! - `event`: waiting for another thread without a lock; `futex`: for a word in memory;
//! - `cpu_timers`: timers on threads' CPU clocks; `timer_delivery`: whether they cut system calls
//!   short;
//! - `cpus`: which one a thread ran on last, and since when, and moving to it;
//! - `run_delay`: how long a thread waited for a CPU;
//! - `threads`: which threads there are, their names, CPU clocks, and whether they are blocked;
//! - `signals`: which signal to use, its handler;
//! - `maps`: the process's mappings; `objects`: its loaded objects; `loader_lock`: asking for them
//!   without waiting;
//! - `stdio`: what the program's streams have not written yet;
//! - `swift`: the demangler of the process's own Swift runtime;
//! - `descriptors`: a descriptor table of the agent's own; `file_system`: its own directories;
//! - `memory`: of the agent's own, apart from the host's;
//! - `process`: what this process is; `claim`: whether memory is its own.
//!
//! Beside them, the same on every system: `locks` with a bound, `log`, `text` without a heap,
//! `hook` (functions that are given at the start), `disabled` (the agent turned off for good),
//! `own_threads` (the ids of the agent's threads), `socket`.
//!
//! `cfg(target_os)` is used here and below, nowhere else.

#[doc(hidden)]
pub mod atomic;
pub mod disabled;
pub mod hook;
#[cfg(target_os = "linux")]
pub mod linux;
pub mod locks;
pub mod log;
pub mod own_threads;
pub mod socket;
pub mod text;

#[cfg(target_os = "linux")]
pub use linux::*;
