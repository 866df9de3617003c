//! Readers: bytes of some format become the pieces of a recording.

mod lines;
pub mod raw;

pub use lines::Lines;
