//! Strict readers of what the formats write: anything that is not in the grammar, or that a viewer
//! would pass over, is an error.

pub mod flamegraph;
pub mod flamescope;
pub mod folded;
pub mod perf;
pub mod pprof;
mod profile_proto;
pub mod viewers;
