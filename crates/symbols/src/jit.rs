//! Code that was made at run time: what its compilers write about it while the program runs.
//!
//! Two kinds of files, both read further as they grow: perf maps (an address, a size and a name a
//! line) and jitdump files, which also tell when code was made, moved and made anew in the same
//! place, its lines, and how its frames are left. What was read goes into a [`CodeMap`], by address
//! and time. Which files a process has, and whom they may belong to, is not known here.

pub mod code_map;
pub mod growing_file;
pub mod jitdump;
pub mod objects;
pub mod perf_map;

pub use code_map::{CodeMap, Function, LineEntry};
pub use growing_file::GrowingFile;
