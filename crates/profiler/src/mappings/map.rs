//! What code is where, at one time.

use std::sync::Arc;
use swipr_formats::model::Module;
use swipr_os::maps::Mapping;
use swipr_runtimes::merge::RuntimeCode;
use swipr_symbols::symbolizer::ObjectKey;

/// A piece of executable memory.
#[derive(Clone, Debug)]
pub struct Code {
    /// First address.
    pub low: u64,
    /// The address behind the last.
    pub high: u64,
    /// What it is called in the output.
    pub module: Arc<Module>,
    /// Where its names are found; `None` for memory without a file.
    pub symbols: Option<Arc<Symbols>>,
}

/// Where an object's names are found.
#[derive(Debug)]
pub struct Symbols {
    /// The file or image.
    pub key: ObjectKey,
    /// What to subtract from an address to get the address in the file.
    pub bias: u64,
}

/// A jitdump file, which its compiler has mapped so that profilers find it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JitDump {
    /// Where it is.
    pub path: Arc<str>,
    /// Its number in its file system.
    pub inode: u64,
}

impl JitDump {
    /// `…/jit-NUMBER.dump`; any other file is none.
    pub(super) fn of(mapping: &Mapping) -> Option<JitDump> {
        let path = mapping.file_path()?;
        let number = path.rsplit('/').next()?.strip_prefix("jit-")?.strip_suffix(".dump")?;
        let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| JitDump { path: path.into(), inode: mapping.inode })
    }
}

/// All executable memory at one time.
#[derive(Debug, Default)]
pub struct Mappings {
    pub(super) code: Vec<Code>,
    pub(super) jit_dumps: Vec<JitDump>,
    /// The interpreter whose frames are read.
    pub interpreter: Option<Arc<RuntimeCode>>,
}

impl Mappings {
    /// All code, from the lowest address.
    pub fn all(&self) -> &[Code] {
        &self.code
    }

    /// The code that holds `address`.
    pub fn find(&self, address: u64) -> Option<&Code> {
        let at = self.code.partition_point(|code| code.low <= address).checked_sub(1)?;
        self.code.get(at).filter(|code| address < code.high)
    }

    /// The same code without a file: of what stays, there is one module.
    pub(super) fn known(&self, code: &Code) -> Option<&Code> {
        let is_same = |known: &&Code| {
            (known.low, known.high) == (code.low, code.high)
                && known.symbols.is_none()
                && known.module == code.module
        };
        self.find(code.low).filter(is_same)
    }

    /// Memory that this takes, without the modules, which others may have, too.
    pub fn bytes(&self) -> usize {
        size_of::<Mappings>() + size_of_val(&*self.code)
    }

    /// The jitdump files that JIT compilers have mapped.
    pub fn jit_dumps(&self) -> &[JitDump] {
        &self.jit_dumps
    }

    /// Where the names of all objects are found.
    pub fn symbols(&self) -> impl Iterator<Item = &Arc<Symbols>> {
        self.code.iter().filter_map(|code| code.symbols.as_ref())
    }
}

#[cfg(test)]
impl Mappings {
    /// So many, of nothing.
    pub fn of_size(count: usize) -> Mappings {
        let build_id = vec![];
        let module = Module { path: "".into(), start: 0, end: 0, file_offset: 0, base: 0, build_id };
        let code = Code { low: 0, high: 0, module: module.into(), symbols: None };
        Mappings { code: vec![code; count], ..Mappings::default() }
    }
}
