//! From an address of an object to names, files and lines. Reads an object's file when its first
//! address is looked up, keeps what was found within a memory budget, and drops the objects that
//! were used longest ago when that is full.
//!
//! Sources, in order: DWARF of the object or its separate debug file (with inlined
//! frames), the symbol tables. Which object an address of the process belongs to,
//! and code without an object (JIT), is not known here. Runs on the sampler
//! thread; not async-signal-safe.

mod names;
mod object;

use crate::demangle::{Names, SwiftDemangler};
use crate::elf::ElfFile;
use crate::error::Error;
use crate::identity::FileIdentity;
use crate::{separate, symbols};
use names::StringInterner;
use object::{Object, Part};
use rustc_hash::FxHashMap;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Objects whose debug file may be open at a time: descriptors are the host's.
const MAX_OPEN_FILES: usize = 32;

/// Bytes of parsed DWARF that are worth the work of parsing them again.
const LEAST_SPARE: usize = 256 << 10;

/// Limits of a [`Symbolizer`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Bytes of memory for everything that is kept, and for a section that is read
    /// at once; parsed DWARF is counted by estimate.
    pub memory_bytes: usize,
    /// Bytes of an object's debug sections above which it gets no lines.
    pub debug_bytes: u64,
    /// Bytes of an object file above which it is refused.
    pub file_bytes: u64,
}

impl Budget {
    /// For a process that does nothing else, and takes its memory from no other program: 4 GiB of
    /// memory, 64 GiB of
    /// debug sections, 16 GiB of file.
    pub const OF_ITS_OWN: Budget =
        Budget { memory_bytes: u32::MAX as usize, debug_bytes: 64 << 30, file_bytes: 16 << 30 };
}

impl Default for Budget {
    /// 64 MiB of memory, 1 GiB of debug sections, 4 GiB of file.
    fn default() -> Budget {
        Budget { memory_bytes: 64 << 20, debug_bytes: 1 << 30, file_bytes: 4 << 30 }
    }
}

/// Which object an address is in.
#[derive(Clone, Debug, Eq)]
pub struct ObjectKey {
    /// The object's file.
    pub path: Arc<str>,
    /// Where that file is looked for besides, and before: the kernel's own links to mapped files go
    /// on when the file was deleted. The same object has the same ones, so they are not compared.
    pub links: Arc<[Arc<str>]>,
    /// The build id that was read from the loaded object; empty if it has none.
    /// A file with another one is refused.
    pub build_id: Arc<[u8]>,
    /// The file that was mapped, for objects without a build id: another one is refused.
    pub file: Option<FileIdentity>,
    /// The whole ELF image, for objects that have no file (the vdso).
    pub image: Option<Arc<[u8]>>,
    /// What was added to its addresses where this process has loaded it. Of an object with a build
    /// id the memory is read where there is no file any more: only the superuser may follow the
    /// kernel's links. Not compared.
    pub loaded: Option<u64>,
}

impl ObjectKey {
    /// Whatever file is at `path`, if it has this build id (empty: any).
    pub fn at(path: &str, build_id: &[u8]) -> ObjectKey {
        ObjectKey {
            path: path.into(),
            links: Arc::new([]),
            build_id: build_id.into(),
            file: None,
            image: None,
            loaded: None,
        }
    }

    fn open(&self, max_bytes: u64) -> Result<ElfFile, Error> {
        if let Some(image) = &self.image {
            return ElfFile::from_memory(image.clone());
        }
        let places = self.links.iter().map(|link| Path::new(&**link)).chain([Path::new(&*self.path)]);
        separate::open_loaded(places, &self.build_id, self.file.as_ref(), max_bytes).or_else(|error| {
            let loaded = self.loaded.and_then(|bias| ElfFile::from_loaded(bias).ok());
            loaded.filter(|it| it.build_id() == Some(&*self.build_id)).ok_or(error)
        })
    }
}

/// The address, in its own numbering, of what an object calls `name`.
pub fn address_of(key: &ObjectKey, name: &str) -> Option<u64> {
    let file = key.open(Budget::default().file_bytes).ok()?;
    let [address] = symbols::addresses_of(&file, [name]);
    address
}

impl PartialEq for ObjectKey {
    fn eq(&self, other: &ObjectKey) -> bool {
        self.path == other.path
            && self.build_id == other.build_id
            && self.file == other.file
            && self.image == other.image
    }
}

impl Hash for ObjectKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // Not the image: it is large, and the path differs anyhow.
        self.path.hash(state);
        self.build_id.hash(state);
        self.file.hash(state);
    }
}

/// What kind of address is looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Lookup {
    /// A program counter: the instruction at the address.
    Pc,
    /// A return address: the call before it, which may be the last instruction of
    /// another line, inlined function, or function.
    ReturnAddress,
}

/// How much is looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Detail {
    /// Everything: inlined functions, files and lines too. May read megabytes of DWARF.
    Lines,
    /// What the symbol tables say.
    Names,
}

/// A function at an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbol {
    /// Its name, readable.
    pub name: Arc<str>,
    /// The linker's name, where that is another.
    pub mangled: Option<Arc<str>>,
    /// Bytes from the function's start to the address; 0 for inlined functions.
    pub offset: u64,
    /// The source file of the instruction.
    pub file: Option<Arc<str>>,
    /// The line in that file.
    pub line: Option<u32>,
    /// Whether it was inlined into the next symbol of the slice.
    pub inlined: bool,
}

/// What a symbolizer holds and has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Objects that are held now.
    pub objects: usize,
    /// Bytes that are held now, parsed DWARF by estimate.
    pub bytes: usize,
    /// Look-ups that were answered from memory.
    pub hits: u64,
    /// Look-ups that were not.
    pub misses: u64,
    /// Files that are not the right ones: another build id, no regular file, too large, malformed.
    pub refused_files: u64,
    /// Files that could not be opened or read.
    pub unreadable_files: u64,
    /// Objects whose lines are left out because the debug information is malformed
    /// or over the budget.
    pub without_lines: u64,
    /// Objects whose symbol tables are left out because they are over the budget.
    pub without_symbols: u64,
    /// How often an object's parsed DWARF was dropped to keep within the budget.
    pub shrunk_objects: u64,
    /// Objects dropped to keep within the budget.
    pub dropped_objects: u64,
}

/// Finds names, files and lines for addresses. See the module's text.
pub struct Symbolizer {
    budget: Budget,
    debug_roots: Vec<PathBuf>,
    names: StringInterner,
    objects: FxHashMap<ObjectKey, Object>,
    /// Bytes of all objects.
    bytes: usize,
    now: u64,
    stats: Stats,
}

impl Symbolizer {
    /// An empty symbolizer.
    pub fn new(budget: Budget) -> Symbolizer {
        Symbolizer {
            budget,
            debug_roots: vec![separate::DEBUG_ROOT.into()],
            names: StringInterner::default(),
            objects: FxHashMap::default(),
            bytes: 0,
            now: 0,
            stats: Stats::default(),
        }
    }

    /// Whether names are made readable (as they are at first). Forgets all answers.
    pub fn set_names(&mut self, names: Names) {
        if self.names.style != names {
            self.drop_all();
            self.names.style = names;
        }
    }

    /// Where separate debug files are installed, besides `/usr/lib/debug`: these come first.
    pub fn add_debug_roots(&mut self, roots: &[PathBuf]) {
        self.debug_roots.splice(0..0, roots.iter().cloned());
    }

    /// Sets the demangler of Swift's names (there is none at first).
    pub fn set_swift_demangler(&mut self, demangler: SwiftDemangler) {
        self.names.swift = Some(demangler);
    }

    /// The functions at an address in the object's own (link-time) numbering,
    /// innermost first; empty if nothing is known.
    pub fn resolve(&mut self, key: &ObjectKey, address: u64, lookup: Lookup) -> Arc<[Symbol]> {
        self.resolve_with(key, address, lookup, Detail::Lines)
    }

    /// As [`Self::resolve`], with as much detail as is wanted.
    pub fn resolve_with(
        &mut self,
        key: &ObjectKey,
        address: u64,
        lookup: Lookup,
        detail: Detail,
    ) -> Arc<[Symbol]> {
        self.now += 1;
        if !self.objects.contains_key(key) {
            let object = Object::load(key, &self.debug_roots, &self.budget, &mut self.stats);
            self.bytes += object.bytes();
            self.objects.insert(key.clone(), object);
        }
        let Some(object) = self.objects.get_mut(key) else { return Arc::new([]) };
        object.last_use = self.now;
        if let Some(known) = object.known(address, lookup, detail) {
            self.stats.hits += 1;
            return known;
        }
        self.stats.misses += 1;
        let before = object.bytes();
        let symbols = {
            let question = (address, lookup, detail);
            object.resolve(question, &mut self.names, &self.debug_roots, &self.budget, &mut self.stats)
        };
        self.bytes = self.bytes - before + object.bytes();
        self.keep_within_budget(key);
        symbols
    }

    /// Drops objects, longest unused first, the current one last.
    fn keep_within_budget(&mut self, current: &ObjectKey) {
        for part in [Part::Units, Part::Contents] {
            while self.bytes + self.names.bytes() > self.budget.memory_bytes {
                let with_spare =
                    self.objects.values_mut().filter(|object| object.spare_bytes(part) > LEAST_SPARE);
                let Some(oldest) = with_spare.min_by_key(|object| object.last_use) else { break };
                let before = oldest.bytes();
                oldest.shrink(part);
                self.bytes = self.bytes - before + oldest.bytes();
                self.stats.shrunk_objects += 1;
                if oldest.spare_bytes(part) > LEAST_SPARE {
                    break;
                }
            }
        }
        let is_open = |object: &Object| object.has_file();
        while self.bytes + self.names.bytes() > self.budget.memory_bytes
            || self.objects.values().filter(|object| is_open(object)).count() > MAX_OPEN_FILES
        {
            let others = self.objects.iter().filter(|(key, _)| *key != current);
            let oldest = others.min_by_key(|(_, object)| object.last_use).map(|(key, _)| key.clone());
            let Some(object) = self.objects.remove(oldest.as_ref().unwrap_or(current)) else { break };
            self.bytes -= object.bytes();
            self.stats.dropped_objects += 1;
            drop(object);
            self.names.forget_unused();
        }
    }

    /// Forgets every object and name; the counters stay.
    pub fn drop_all(&mut self) {
        self.objects = FxHashMap::default();
        self.names.clear();
        self.bytes = 0;
    }

    /// What is held now, and the counters since the beginning.
    pub fn stats(&self) -> Stats {
        let bytes = self.bytes + self.names.bytes();
        Stats { objects: self.objects.len(), bytes, ..self.stats }
    }
}
