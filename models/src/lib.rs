//! The agent's queue and pipe, compiled from its own files with locks and counters that try every order of events.
//! What must hold is in `tests/`; so are the parts of `unwind` that handlers share with the sampler.

pub use swipr::{recording, sampler, stack};

#[path = "../../agent/src/pipe.rs"]
pub mod pipe;
#[path = "../../agent/src/sample_queue.rs"]
pub mod sample_queue;
mod sync;
