//! Which of several symbols of one address gives the function its name.

use crate::demangle::is_mangled;
use object::elf;

/// What a symbol is, besides its name.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rank {
    pub(super) is_stub: bool,
    pub(super) is_untyped: bool,
    pub(super) binding: Binding,
    pub(super) is_unsized: bool,
}

/// Where a symbol is visible, the better first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Binding {
    Global,
    Weak,
    Local,
}

impl Binding {
    /// Of `STB_*`.
    pub(super) fn of(number: u8) -> Binding {
        match number {
            elf::STB_GLOBAL | elf::STB_GNU_UNIQUE => Binding::Global,
            elf::STB_LOCAL => Binding::Local,
            _ => Binding::Weak,
        }
    }
}

impl Rank {
    /// What counts more than the name: functions before labels, and both before stubs.
    pub(super) fn class(self) -> (bool, bool) {
        (self.is_stub, self.is_untyped)
    }

    /// How far a symbol with this name is from what people write: `malloc` is nearer than
    /// `__libc_malloc`, though both are global.
    pub(super) fn distance(self, name: &str) -> ((bool, bool), usize, Binding) {
        (self.class(), leading_underscores(name), self.binding)
    }
}

/// How much of an inner name it is. The underscores of mangled names are not their author's.
fn leading_underscores(name: &str) -> usize {
    if is_mangled(name) { 0 } else { name.bytes().take_while(|&byte| byte == b'_').count() }
}
