//! Object files: build ids, unwind rows, symbols, lines, inlined frames, demangling.
//!
//! Two ways in. [`rows::build_table`] turns the `.eh_frame` of a loaded object
//! into the table that `swipr-unwind` walks stacks with. [`symbolizer::Symbolizer`]
//! turns addresses into names, files and lines, within a memory budget.
//!
//! No byte is trusted: a broken file gives fewer frames, never a panic. Files are read into owned
//! memory and never mapped, so that a file that shrinks meanwhile is a failed read and not a SIGBUS
//! in the host. Nothing here is async-signal-safe, nothing reads another thread's stack, nothing
//! knows what a recording is.

pub mod demangle;
pub mod elf;
pub mod error;
pub mod first_functions;
pub mod go;
pub mod identity;
pub mod jit;
mod lines;
mod pages;
pub mod separate;
pub mod symbol_api;
pub mod symbolizer;
pub mod symbols;

pub use swipr_unwind_tables as rows;
pub use swipr_unwind_tables::table;
