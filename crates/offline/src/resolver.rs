//! What finds names: this crate's own reader of debug information, or an installed program.

use std::sync::Arc;
use swipr_symbols::symbolizer::{Detail, Lookup, ObjectKey, Symbol, Symbolizer};

/// Finds the functions at addresses of files.
pub trait Resolver {
    /// The functions at an address in the file's own numbering, the innermost first; none where
    /// nothing is known.
    fn resolve(&mut self, file: &ObjectKey, address: u64, lookup: Lookup) -> Arc<[Symbol]>;

    /// The function whose code is at an address.
    fn name(&mut self, file: &ObjectKey, address: u64) -> Option<Symbol> {
        self.resolve(file, address, Lookup::Pc).last().cloned()
    }
}

impl Resolver for Symbolizer {
    fn resolve(&mut self, file: &ObjectKey, address: u64, lookup: Lookup) -> Arc<[Symbol]> {
        Symbolizer::resolve(self, file, address, lookup)
    }

    fn name(&mut self, file: &ObjectKey, address: u64) -> Option<Symbol> {
        self.resolve_with(file, address, Lookup::Pc, Detail::Names).last().cloned()
    }
}
