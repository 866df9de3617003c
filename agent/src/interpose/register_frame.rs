//! `__register_frame` and related calls, interposed where the library is preloaded. With them JIT
//! compilers register the unwind information of their code with the C++ runtime. Each call is
//! recorded and passed on to the real function ([`crate::interpose::real_fn`]), and its result
//! returned.

use crate::interpose::real_fn::RealFn;
use profiler::for_library::registered_frames;
use std::ffi::c_void;

static REGISTER: RealFn = RealFn::new(c"__register_frame");
static DEREGISTER: RealFn = RealFn::new(c"__deregister_frame");
static REGISTER_INFO: RealFn = RealFn::new(c"__register_frame_info");
static DEREGISTER_INFO: RealFn = RealFn::new(c"__deregister_frame_info");

/// Looks up the real functions.
pub fn prepare() {
    for next in [&REGISTER, &DEREGISTER, &REGISTER_INFO, &DEREGISTER_INFO] {
        next.get();
    }
}

type OfFrames = unsafe extern "C" fn(*const c_void);
type WithRoom = unsafe extern "C" fn(*const c_void, *mut c_void);
type GivingBack = unsafe extern "C" fn(*const c_void) -> *mut c_void;

/// Registers frame descriptions (libgcc's `unwind-dw2-fde.h`).
///
/// # Safety
/// As the real function requires.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __register_frame(begin: *const c_void) {
    let next = REGISTER.get();
    if !next.is_null() {
        // SAFETY: the function of this name, called with what its caller gave.
        unsafe { std::mem::transmute::<*mut c_void, OfFrames>(next)(begin) };
    }
    registered_frames::record(begin as u64);
}

/// Takes a registration back.
///
/// # Safety
/// As [`__register_frame`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __deregister_frame(begin: *const c_void) {
    registered_frames::forget(begin as u64);
    let next = DEREGISTER.get();
    if !next.is_null() {
        // SAFETY: as in `__register_frame`.
        unsafe { std::mem::transmute::<*mut c_void, OfFrames>(next)(begin) };
    }
}

/// Registers frame descriptions with room that the caller lends for it.
///
/// # Safety
/// As [`__register_frame`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __register_frame_info(begin: *const c_void, object: *mut c_void) {
    let next = REGISTER_INFO.get();
    if !next.is_null() {
        // SAFETY: as in `__register_frame`.
        unsafe { std::mem::transmute::<*mut c_void, WithRoom>(next)(begin, object) };
    }
    registered_frames::record(begin as u64);
}

/// Takes such a registration back; returns the room that was lent, or null.
///
/// # Safety
/// As [`__register_frame`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __deregister_frame_info(begin: *const c_void) -> *mut c_void {
    registered_frames::forget(begin as u64);
    let next = DEREGISTER_INFO.get();
    if next.is_null() {
        return std::ptr::null_mut();
    }
    // SAFETY: as in `__register_frame`.
    unsafe { std::mem::transmute::<*mut c_void, GivingBack>(next)(begin) }
}
