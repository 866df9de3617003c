//! Strict readers of what the formats write: anything that is not in the grammar is an error.

pub mod folded;
pub mod perf;
pub mod pprof;
mod profile_proto;
pub mod viewers;
