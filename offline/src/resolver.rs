//! Who finds names: this crate's own reader of debug information, or an installed program.

use std::sync::Arc;
use swipr_debuginfo::symbolizer::{Lookup, ObjectKey, Symbol, Symbolizer};

/// Finds the functions at addresses of files.
pub trait Resolver {
    /// The functions at an address in the file's own numbering, the innermost first; none where nothing is known.
    fn resolve(&mut self, file: &ObjectKey, address: u64, lookup: Lookup) -> Arc<[Symbol]>;
}

impl Resolver for Symbolizer {
    fn resolve(&mut self, file: &ObjectKey, address: u64, lookup: Lookup) -> Arc<[Symbol]> {
        Symbolizer::resolve(self, file, address, lookup)
    }
}
