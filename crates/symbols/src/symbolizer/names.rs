//! Each name and file once, however many symbols have it, and mangled names with
//! their readable form, so that none is demangled twice.

use crate::demangle::{Names, SwiftDemangler, demangle, swift};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// Bytes around a string: its counts and its place in the set.
const OVERHEAD_BYTES: usize = 48;

/// A store of shared strings.
#[derive(Default)]
pub(super) struct StringInterner {
    /// Which form of names is wanted.
    pub(super) style: Names,
    /// For names of Swift's.
    pub(super) swift: Option<SwiftDemangler>,
    strings: FxHashSet<Arc<str>>,
    readable: FxHashMap<Arc<str>, Arc<str>>,
    bytes: usize,
}

impl StringInterner {
    /// The one copy of a string.
    pub(super) fn share(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.strings.get(text) {
            return known.clone();
        }
        let new: Arc<str> = text.into();
        self.bytes += text.len() + OVERHEAD_BYTES;
        self.strings.insert(new.clone());
        new
    }

    /// The name to show for a linker's name, and that name where it is another.
    pub(super) fn name(&mut self, linkage: &str) -> (Arc<str>, Option<Arc<str>>) {
        if self.style == Names::Raw {
            return (self.share(linkage), None);
        }
        if let Some((mangled, readable)) = self.readable.get_key_value(linkage) {
            return (readable.clone(), Some(mangled.clone()));
        }
        let Some(readable) = demangle(linkage).or_else(|| swift(linkage, self.swift)) else {
            return (self.share(linkage), None);
        };
        let (readable, mangled) = (self.share(&readable), self.share(linkage));
        self.bytes += OVERHEAD_BYTES;
        self.readable.insert(mangled.clone(), readable.clone());
        (readable, Some(mangled))
    }

    /// Drops what no symbol refers to any more.
    pub(super) fn forget_unused(&mut self) {
        // One count each for the two maps; a third means that a symbol has it.
        self.readable.retain(|mangled, _| Arc::strong_count(mangled) > 2);
        self.strings.retain(|text| Arc::strong_count(text) > 1);
        let strings = self.strings.iter().map(|text| text.len() + OVERHEAD_BYTES).sum::<usize>();
        self.bytes = strings + self.readable.len() * OVERHEAD_BYTES;
    }

    /// Drops everything.
    pub(super) fn clear(&mut self) {
        *self = StringInterner { style: self.style, swift: self.swift, ..StringInterner::default() };
    }

    /// Bytes in use.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}
