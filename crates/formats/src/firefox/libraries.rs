//! The libraries of a profile: a file each, with the ids by which symbol servers know it.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::json::{Members, hex_bytes, string};
use crate::model::{Frame, Module};
use crate::names;

/// Files, numbered.
pub(super) struct Libraries {
    files: Vec<Arc<Module>>,
    ids: FxHashMap<(String, Vec<u8>), usize>,
}

impl Libraries {
    /// Those of all frames.
    pub(super) fn of<'f>(frames: impl Iterator<Item = &'f Frame>) -> Self {
        let mut libraries = Libraries { files: Vec::new(), ids: FxHashMap::default() };
        for module in frames.filter_map(|frame| frame.module.as_ref()) {
            let next = libraries.files.len();
            let id = *libraries.ids.entry(key(module)).or_insert(next);
            if id == next {
                libraries.files.push(Arc::clone(module));
            }
        }
        libraries
    }

    /// A module's number.
    pub(super) fn id(&self, module: &Module) -> Option<usize> {
        self.ids.get(&key(module)).copied()
    }

    /// The name that people know a library by.
    pub(super) fn name(module: &Module) -> String {
        let path = path(module);
        names::printable(path.rsplit('/').find(|part| !part.is_empty()).unwrap_or(path))
    }

    pub(super) fn json(&self) -> String {
        let one = |module: &Arc<Module>| {
            let (name, path) = (string(&Libraries::name(module)), string(&names::printable(path(module))));
            let code_id = (!module.build_id.is_empty()).then(|| string(&hex_bytes(&module.build_id)));
            Members::object()
                .field("name", &name)
                .field("path", &path)
                .field("debugName", &name)
                .field("debugPath", &path)
                .field("breakpadId", string(&debug_id(&module.build_id)))
                .field("codeId", code_id.unwrap_or_else(|| "null".to_owned()))
                .field("arch", string(std::env::consts::ARCH))
                .end()
        };
        self.files.iter().map(one).fold(Members::array(), Members::element).end()
    }
}

/// A file may be mapped in several pieces.
fn key(module: &Module) -> (String, Vec<u8>) {
    (module.path.clone(), module.build_id.clone())
}

fn path(module: &Module) -> &str {
    module.path.strip_suffix(" (deleted)").unwrap_or(&module.path)
}

/// Breakpad's debug id of an ELF file: the first 16 bytes of its build id as a GUID, whose first
/// three numbers are little-endian, and an age of 0.
pub fn debug_id(build_id: &[u8]) -> String {
    let mut bytes = [0u8; 16];
    bytes.iter_mut().zip(build_id).for_each(|(to, from)| *to = *from);
    for number in [0..4, 4..6, 6..8] {
        if let Some(number) = bytes.get_mut(number) {
            number.reverse();
        }
    }
    format!("{}0", hex_bytes(&bytes).to_ascii_uppercase())
}

#[cfg(test)]
mod tests {
    use super::debug_id;

    #[test]
    fn build_ids_become_guids() {
        let id: Vec<u8> = (1..=20).collect();
        assert_eq!(debug_id(&id), "0403020106050807090A0B0C0D0E0F100");
        assert_eq!(debug_id(&[0xab]), "000000AB0000000000000000000000000");
    }
}
