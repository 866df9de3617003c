//! Numbers of system calls by what text calls them: by name, or by number where they have none.

use rustc_hash::FxHashMap;
use swipr_formats::syscalls;

/// System calls have smaller numbers.
const END: u32 = 1024;

/// See the module's text.
#[derive(Debug)]
pub(super) struct SystemCalls(FxHashMap<&'static str, u32>);

impl SystemCalls {
    pub(super) fn new() -> SystemCalls {
        SystemCalls((0..END).filter_map(|number| Some((syscalls::name(number)?, number))).collect())
    }

    /// Of `futex`, or of `999`.
    pub(super) fn number(&self, text: &str) -> Option<u32> {
        self.0.get(text).copied().or_else(|| text.parse().ok())
    }
}
