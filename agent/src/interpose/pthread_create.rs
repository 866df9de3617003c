//! `pthread_create`, interposed: while a recording runs, a new thread arms a timer before its own
//! function begins (`thread_start.rs`). Not interposed: threads made without the C library, and
//! C11's `thrd_create`, which calls no exported function. The sampler finds those at its next
//! sweep.

use crate::interpose::real_fn::RealFn;
use profiler::for_library::thread_start::{self, Place};
use std::ffi::{c_int, c_void};
use swipr_os::disabled;

static PTHREAD_CREATE: RealFn = RealFn::new(c"pthread_create");

/// Looks up the real function.
pub fn prepare() {
    PTHREAD_CREATE.get();
}

type Create = unsafe extern "C" fn(*mut libc::pthread_t, *const libc::pthread_attr_t, usize, usize) -> c_int;

/// pthread_create(3).
///
/// # Safety
/// As the real function requires.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_create(
    thread: *mut libc::pthread_t,
    attributes: *const libc::pthread_attr_t,
    routine: usize,
    argument: usize,
) -> c_int {
    let next = PTHREAD_CREATE.get();
    if next.is_null() {
        return libc::EAGAIN;
    }
    // SAFETY: the function of this name.
    let create = unsafe { std::mem::transmute::<*mut c_void, Create>(next) };
    let place = disabled::contained(|| thread_start::take(routine, argument)).flatten();
    clear_stack();
    let Some(place) = place else {
        // SAFETY: called with what its caller gave.
        return unsafe { create(thread, attributes, routine, argument) };
    };
    let (first, place_at) = (first as *const () as usize, std::ptr::from_ref(place) as usize);
    // SAFETY: as above; `first` is a thread's function, whose argument is a place that stays.
    let error = unsafe { create(thread, attributes, first, place_at) };
    if error != 0 {
        place.give_back();
    }
    error
}

/// Clears the stack that the real function is about to use. Where a seccomp filter refuses to block
/// signals (tor's), glibc restores a mask that it never got: whatever lay there before. The program
/// must not depend on what this library left.
#[inline(never)]
fn clear_stack() {
    std::hint::black_box(&mut [0u8; 1024]);
}

/// The new thread's function. It leaves no frame: the thread's own function is jumped to, and
/// returns to the C library. So does an exception or pthread_exit(3).
#[unsafe(naked)]
extern "C" fn first(place: *const Place) {
    // [`begin`] returns two words in rax and rdx.
    core::arch::naked_asm!(
        ".cfi_startproc",
        "sub rsp, 8",
        ".cfi_adjust_cfa_offset 8",
        "call {begin}",
        "add rsp, 8",
        ".cfi_adjust_cfa_offset -8",
        "mov rdi, rdx",
        "jmp rax",
        ".cfi_endproc",
        begin = sym begin,
    )
}

/// A thread's function and its argument.
#[derive(Debug)]
#[repr(C)]
struct Body {
    routine: usize,
    argument: usize,
}

/// # Safety
/// `place` is what `pthread_create` passed on.
unsafe extern "C" fn begin(place: *const Place) -> Body {
    // SAFETY: places are statics.
    let place = unsafe { &*place };
    let [routine, argument] = place.body();
    let armed = disabled::contained(|| place.arm()).flatten().is_some();
    if !armed {
        place.give_back();
    }
    Body { routine, argument }
}
