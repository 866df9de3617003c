//! Atomics under a name of the crate's own. `tests/models/` compiles the files that use them with
//! another module of this name, whose atomics try every order of events.

pub(crate) use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
