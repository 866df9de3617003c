//! JIT code: what its compilers write about it while the program runs.
//!
//! Two kinds of files, both read further as they grow. Perf maps have an address, a size and a name
//! a line. jitdump files also say when code was made, moved and replaced in the same place, its
//! lines, and its unwind information. What was read goes into a [`CodeMap`], by address and time.
//! Which files a process has, and which users they may belong to, is not known here.

pub mod code_map;
pub mod jitdump;
pub mod objects;
pub mod perf_map;
pub mod tailed_file;

pub use code_map::{CodeMap, Function, LineEntry};
pub use tailed_file::TailedFile;
