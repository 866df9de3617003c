//! Atomics under a name of the crate's own. `tests/models/` compiles the files that use them with
//! another module of this name, whose atomics try every order of events.

pub use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};
