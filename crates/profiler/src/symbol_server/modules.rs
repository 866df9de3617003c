//! Modules by the names and ids that profiles have.

use crate::mappings::{Code, Mappings};
use crate::writer::NameSources;
use std::sync::Arc;
use swipr_os::locks::lock;
use swipr_symbols::symbol_api;
use swipr_symbols::symbolizer::{Detail, Lookup, Symbol};

/// The modules of the process.
pub(super) struct Modules<'a> {
    mappings: &'a Mappings,
    names: &'a NameSources,
}

/// An address of a module.
pub(super) struct ModulePlace<'a> {
    pub(super) code: &'a Code,
    /// Where it is now.
    pub(super) address: u64,
}

impl<'a> Modules<'a> {
    pub(super) fn new(mappings: &'a Mappings, names: &'a NameSources) -> Modules<'a> {
        Modules { mappings, names }
    }

    /// The code of a module; of one in several pieces the first.
    fn find(&self, name: &str, debug_id: &str) -> Option<&'a Code> {
        self.mappings.all().iter().find(|code| {
            let is_named = code.module.path.rsplit('/').next() == Some(name);
            is_named && swipr_formats::debug_id(&code.module.build_id).eq_ignore_ascii_case(debug_id)
        })
    }

    /// An offset from a module's base, if there is code.
    pub(super) fn place(&self, name: &str, debug_id: &str, offset: u64) -> Option<ModulePlace<'a>> {
        let code = self.find(name, debug_id)?;
        let address = code.module.base.wrapping_add(offset);
        let here = self.mappings.find(address).filter(|here| Arc::ptr_eq(&here.module, &code.module))?;
        Some(ModulePlace { code: here, address })
    }
}

impl symbol_api::Modules for Modules<'_> {
    fn has(&self, name: &str, debug_id: &str) -> bool {
        self.find(name, debug_id).is_some()
    }

    fn functions(&self, name: &str, debug_id: &str, offset: u64) -> Option<Arc<[Symbol]>> {
        let place = self.place(name, debug_id, offset)?;
        let found = place.code.symbols.as_ref().and_then(|symbols| {
            let in_file = place.address.wrapping_sub(symbols.bias);
            let mut symbolizer = lock(&self.names.symbolizer)?;
            Some(symbolizer.resolve_with(&symbols.key, in_file, Lookup::Pc, Detail::Lines))
        });
        Some(found.unwrap_or_else(|| Arc::from([])))
    }
}
