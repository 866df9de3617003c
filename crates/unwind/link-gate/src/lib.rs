//! Proves by linking that `swipr-unwind` and the walk of `swipr-runtimes` need nothing that is
//! forbidden in a signal handler. The library below uses all of it, and is linked with no other
//! library and no undefined symbol allowed. A panic would call a function that
//! exists nowhere; so would an allocation or a libc call. Only the four memory functions
//! that compilers emit by themselves are supplied.
//!
//! Run `./check` here. It stands outside of the main workspace because a
//! workspace build would unify features and lose `panic = "abort"`.
#![no_std]

use swipr_unwind::arch::Native;
use swipr_unwind::frames::{Frames, Storage};
use swipr_unwind::memory::OtherStack;
use swipr_unwind::registers::Registers;
use swipr_unwind::walk::{self, Workspace};
use swipr_unwind::{handler, memory, published, slot};

unsafe extern "C" {
    /// Exists nowhere: a reference to it fails the link.
    fn swipr_unwind_must_not_panic() -> !;
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    // SAFETY: never linked, so never called.
    unsafe { swipr_unwind_must_not_panic() }
}

/// The handler itself.
#[unsafe(no_mangle)]
pub extern "C" fn gate_handler() -> usize {
    handler::on_signal as *const () as usize
}

/// What the handler calls for an interpreter's frames.
#[unsafe(no_mangle)]
pub extern "C" fn gate_interpreter() -> usize {
    swipr_runtimes::reader::read as *const () as usize
}

/// The walk of another thread's stack.
///
/// # Safety
/// `storage` and `window` (of `length` bytes) are valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gate_walk(
    storage: &Storage,
    window: *mut u8,
    length: usize,
    pc: u64,
    sp: u64,
) -> u32 {
    // SAFETY: the caller's contract.
    let window = unsafe { core::slice::from_raw_parts_mut(window, length) };
    let mut stack = OtherStack::new(window, -1);
    let mut frames = Frames::new(storage);
    // SAFETY: only linked, never run.
    let Some(rules) = (unsafe { published::current() }) else { return 0 };
    walk::walk::<Native, _>(
        &rules,
        &mut stack,
        Registers::blocked(pc, sp),
        0,
        &mut frames,
        &mut Workspace::new(),
    ) as u32
}

/// Writes the statics. Without it the compiler would see that there never are tables or slots, drop
/// the walk, and the gate would prove nothing.
///
/// # Safety
/// As `published::publish`, `published::interpreter::publish` and `slot::add_chunk` ask.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gate_publish(
    snapshot: *mut published::Snapshot<'static>,
    interpreter: *mut published::interpreter::Interpreter,
    chunk: usize,
    memory: *mut u8,
) {
    // SAFETY: the caller's contract.
    unsafe {
        published::publish(snapshot);
        published::interpreter::publish(interpreter);
        slot::add_chunk(chunk, memory);
    }
}

/// The slots.
#[unsafe(no_mangle)]
pub extern "C" fn gate_slots(hint: usize) -> bool {
    memory::set_process(1);
    published::clear_cache();
    match slot::acquire(hint, slot::StackBounds::default()) {
        Some(ticket) => {
            slot::again(ticket, slot::StackBounds::default());
            slot::timers_of(1).count() > 0
                || slot::release(ticket)
                || slot::is_done(ticket)
                || slot::any_written()
        }
        None => false,
    }
}

/// # Safety
/// As C's memset.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn memset(to: *mut u8, byte: i32, length: usize) -> *mut u8 {
    for at in 0..length {
        // SAFETY: the caller's contract; volatile so that this does not become a call of itself.
        unsafe { to.add(at).write_volatile(byte as u8) };
    }
    to
}

/// # Safety
/// As C's memcpy.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn memcpy(to: *mut u8, from: *const u8, length: usize) -> *mut u8 {
    for at in 0..length {
        // SAFETY: the caller's contract.
        unsafe { to.add(at).write_volatile(from.add(at).read_volatile()) };
    }
    to
}

/// # Safety
/// As C's memmove.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn memmove(to: *mut u8, from: *const u8, length: usize) -> *mut u8 {
    for step in 0..length {
        let at = if (to as usize) < from as usize { step } else { length - 1 - step };
        // SAFETY: the caller's contract.
        unsafe { to.add(at).write_volatile(from.add(at).read_volatile()) };
    }
    to
}

/// # Safety
/// As C's memcmp.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn memcmp(left: *const u8, right: *const u8, length: usize) -> i32 {
    for at in 0..length {
        // SAFETY: the caller's contract.
        let (a, b) = unsafe { (left.add(at).read_volatile(), right.add(at).read_volatile()) };
        if a != b {
            return i32::from(a) - i32::from(b);
        }
    }
    0
}
