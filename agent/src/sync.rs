//! Locks, channels and counters by a name of our own: `models/` compiles the files that use them together with another module of
//! this name, which tries every order of events.

pub(crate) use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, atomic, mpsc};
