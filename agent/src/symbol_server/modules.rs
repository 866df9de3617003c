//! Modules by the names and ids that profiles have.

use crate::locks::lock;
use crate::mappings::{Code, Mappings};
use crate::writer::NameSources;
use serde_json::Value;
use std::fmt::Write;
use std::sync::Arc;
use swipr_debuginfo::symbolizer::{Detail, Lookup, Symbol};

/// See the module's text.
pub(super) struct Modules<'a> {
    mappings: &'a Mappings,
}

/// An address of a module.
pub(super) struct Place<'a> {
    pub(super) code: &'a Code,
    /// Where it is now.
    pub(super) address: u64,
}

impl<'a> Modules<'a> {
    pub(super) fn new(mappings: &'a Mappings) -> Modules<'a> {
        Modules { mappings }
    }

    /// The code of a module; of one in several pieces the first.
    pub(super) fn find(&self, name: &str, debug_id: &str) -> Option<&'a Code> {
        self.mappings.code().find(|code| {
            let is_named = code.module.path.rsplit('/').next() == Some(name);
            is_named && debug_id_of(&code.module.build_id).eq_ignore_ascii_case(debug_id)
        })
    }

    /// An offset of a module, if there is code.
    pub(super) fn place(&self, code: &Code, offset: u64) -> Option<Place<'a>> {
        let address = code.module.start.checked_add(offset)?.checked_sub(code.module.file_offset)?;
        let here = self.mappings.find(address).filter(|here| Arc::ptr_eq(&here.module, &code.module))?;
        Some(Place { code: here, address })
    }

    /// The module and the offset that a question is about.
    pub(super) fn asked(&self, question: &Value, offset: &str) -> Result<Place<'a>, String> {
        let text = |field: &str| question.get(field).and_then(Value::as_str).unwrap_or_default();
        let code = self.find(text("debugName"), text("debugId"));
        let code = code.ok_or("no module has this debugName and debugId")?;
        let digits = text(offset).trim_start_matches("0x");
        let offset =
            u64::from_str_radix(digits, 16).map_err(|_| format!("{offset} is no hexadecimal number"))?;
        self.place(code, offset).ok_or_else(|| "there is no code of the module".into())
    }
}

impl Place<'_> {
    /// The functions there, the innermost first.
    pub(super) fn functions(&self, names: &NameSources) -> Arc<[Symbol]> {
        let found = self.code.symbols.as_ref().and_then(|symbols| {
            let in_file = self.address.wrapping_sub(symbols.bias);
            let mut symbolizer = lock(&names.symbolizer)?;
            Some(symbolizer.resolve_with(&symbols.key, in_file, Lookup::Pc, Detail::Lines))
        });
        found.unwrap_or_else(|| Arc::from([]))
    }
}

/// Breakpad's id of an ELF file: the first 16 bytes of its build id as a GUID, whose first three numbers are little-endian, and an age of 0.
fn debug_id_of(build_id: &[u8]) -> String {
    const ORDER: [usize; 16] = [3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15];
    let mut text = String::with_capacity(33);
    for at in ORDER {
        let _ = write!(text, "{:02X}", build_id.get(at).copied().unwrap_or(0));
    }
    text + "0"
}

#[cfg(test)]
mod tests {
    use super::debug_id_of;

    #[test]
    fn debug_ids_are_breakpads() {
        let id: Vec<u8> = (1..=20).collect();
        assert_eq!(debug_id_of(&id), "0403020106050807090A0B0C0D0E0F100");
        assert_eq!(debug_id_of(&[0xab]), "000000AB0000000000000000000000000");
    }
}
