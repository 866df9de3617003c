//! Atomics by a name of our own: `tests/models/` compiles the files that change them together with
//! another module of this name, whose atomics try every order of events.

pub use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};
