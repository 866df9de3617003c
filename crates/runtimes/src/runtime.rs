//! The interpreters whose frames can be read.

use crate::blocks::BlockMemory;
use crate::java::{self, JavaLayout};
use crate::known::KnownKeys;
use crate::perl::{self, PerlLayout};
use crate::php::{self, PhpLayout};
use crate::python::{self, Layout, ThreadKey};
use crate::room::Chain;
use crate::ruby::{self, RubyLayout};
use crate::v8::{self, V8Layout};
use swipr_unwind::code_cache::CodeCache;
use swipr_unwind::frame_runs::NativeFrames;

/// One of them, and where it keeps what is read.
#[derive(Clone, Copy, Debug)]
pub enum Runtime {
    /// CPython.
    Python(Layout),
    /// Perl 5.
    Perl(PerlLayout),
    /// PHP.
    Php(PhpLayout),
    /// Ruby.
    Ruby(RubyLayout),
    /// V8, which runs JavaScript.
    V8(V8Layout),
    /// HotSpot, which runs Java.
    Java(JavaLayout),
}

impl Runtime {
    /// Whether each of its functions has a native frame of its own, without a table.
    pub fn is_native(&self) -> bool {
        matches!(self, Runtime::V8(_) | Runtime::Java(_))
    }

    /// Its code, where frames have other rules.
    pub fn code_cache(&self) -> Option<CodeCache> {
        if let Runtime::Java(layout) = self { Some(layout.code_cache) } else { None }
    }

    /// Reads the frames of a thread, which stands still, and whose state is at `state`; 0: not
    /// known.
    pub fn walk(
        &self,
        state: u64,
        (thread, native): (ThreadKey, NativeFrames<'_>),
        memory: &mut BlockMemory<'_>,
        known: KnownKeys<'_>,
        chain: &mut Chain,
    ) {
        match self {
            Runtime::Python(layout) => {
                let native = layout.calls(native);
                python::walk(layout, state, (thread, native), memory, known, chain);
            }
            Runtime::Perl(layout) => perl::walk(layout, state, thread, memory, known, chain),
            Runtime::Php(layout) => php::walk(layout, state, thread, memory, known, chain),
            Runtime::Ruby(layout) => ruby::walk(layout, state, thread, memory, known, chain),
            Runtime::Java(layout) => java::walk(layout, native, memory, known, chain),
            Runtime::V8(layout) => v8::walk(layout, native, memory, known, chain),
        }
    }
}
