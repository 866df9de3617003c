//! Recordings without names, named elsewhere: on another machine, later, with the files that fit by
//! their build ids.
//!
//! [`read`] takes the lines of `format=raw`, and those of swift-profile-recorder's `[SWIPR]` files.
//! [`symbolize`] gives names by a [`SearchPath`], and [`Recording::write`] makes any of the formats
//! of it. [`RawLines`] reads raw lines while they come. No file is believed: what is malformed is
//! an error with its line, and what does not fit a module is not used for it. Nothing here runs in
//! a profiled program.

#![forbid(unsafe_code)]

mod error;
mod llvm;
mod modules;
mod names;
mod raw;
mod recorder_lines;
mod recording;
mod resolver;
mod search;

pub use error::Error;
pub use llvm::LlvmSymbolizer;
pub use modules::Modules;
pub use names::{Named, symbolize, symbolize_by};
pub use raw::{Line, RawLines};
pub use recording::{Recording, Taken};
pub use resolver::Resolver;
pub use search::SearchPath;

/// Reads a recording, of whichever of the two kinds it is.
pub fn read(text: &str) -> Result<Recording, Error> {
    match text.lines().any(recorder_lines::is_one) {
        true => recorder_lines::read(text),
        false => raw::read(text),
    }
}
