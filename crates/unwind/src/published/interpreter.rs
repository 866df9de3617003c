//! An interpreter in this process, whose frames are read after the native walk: a function of
//! another crate, so that this one depends on nothing.
//!
//! Published and freed as the tables are, see [`super`].

use super::Range;
use super::pointer::Pointer;
use crate::atomic::AtomicPtr;
use crate::code_cache::CodeCache;
use crate::frame_runs::NativeFrames;
use core::ffi::c_void;

/// What reads its frames.
#[derive(Clone, Copy, Debug)]
pub struct Interpreter {
    /// Code in two parts: a stack without it has none of its frames.
    pub needed: [Range; 2],
    /// Its frames are native ones, which have frame pointers and no tables.
    pub is_native: bool,
    /// Its code, where frames have other rules.
    pub code_cache: Option<CodeCache>,
    /// Called with an [`Interrupted`], on a stack of some kilobytes.
    pub read: unsafe extern "C" fn(*mut c_void),
    /// For `read`.
    pub data: *const c_void,
}

/// The thread whose frames are to be read.
#[derive(Debug)]
#[repr(C)]
pub struct Interrupted<'a> {
    /// [`Interpreter::data`].
    pub data: *const c_void,
    /// The slot's room for them; null: it has none.
    pub room: *mut c_void,
    /// The thread's pointer to its control block.
    pub thread_pointer: u64,
    /// Its innermost instruction.
    pub pc: u64,
    /// The thread's id.
    pub tid: u32,
    /// Its native frames.
    pub native: NativeFrames<'a>,
}

impl Interpreter {
    /// Whether a stack with the code at `pc` may have frames of it.
    pub fn may_run(&self, pc: u64) -> bool {
        self.needed.iter().any(|part| part.low <= pc && pc < part.high)
    }
}

static CURRENT: Pointer<Interpreter> = Pointer(AtomicPtr::new(core::ptr::null_mut()));

/// Puts `interpreter` (or, with null, none) in place.
///
/// # Safety
/// It and all it refers to stay valid and unchanged until it was replaced and
/// [`crate::slot::any_written`] was seen to be false afterwards. `read` does what a handler may do,
/// and reads nothing but what it is given.
pub unsafe fn publish(interpreter: *mut Interpreter) {
    CURRENT.publish(interpreter);
}

/// Clears the pointer, unless it is another one's by now.
pub fn unpublish(interpreter: *mut Interpreter) {
    CURRENT.unpublish(interpreter);
}

/// The published interpreter.
///
/// # Safety
/// As [`super::current`].
#[inline(always)]
pub unsafe fn current<'a>() -> Option<&'a Interpreter> {
    // SAFETY: `publish`'s caller keeps it valid while it can be held; this function's caller says
    // that it may hold one.
    unsafe { CURRENT.current().as_ref() }
}
