//! What Firefox Profiler requests of a symbol server: names for addresses, and source files. The
//! JSON is that of its `docs-developer/symbol-server-api.md` and of Tecken's v5; addresses are
//! offsets in a module's file.
//!
//! Not here: which modules there are and where their files lie ([`Modules`]), and authorization.

mod source;
mod symbolicate;

pub use source::source;
pub use symbolicate::symbolicate;

use crate::symbolizer::Symbol;
use std::sync::Arc;

/// The modules that questions are about, known by the name of their file and by Breakpad's id.
pub trait Modules {
    /// Whether there is such a module.
    fn has(&self, name: &str, debug_id: &str) -> bool;

    /// The functions at an offset in a module's file, the innermost first. `None`: no such module,
    /// or no code there.
    fn functions(&self, name: &str, debug_id: &str, offset: u64) -> Option<Arc<[Symbol]>>;
}
