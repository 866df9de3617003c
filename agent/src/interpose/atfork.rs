//! `__register_atfork`, which pthread_atfork(3) calls, interposed where the library is preloaded.
//! Each call is passed on, and its result returned. After each call the agent's own fork handlers
//! are registered again, so that they stay the outermost ones; `lifecycle/fork.rs` says why. It may
//! be called before the constructor.

use crate::interpose::real_fn::RealFn;
use profiler::for_library::lifecycle;
use std::ffi::{c_int, c_void};

static REGISTER: RealFn = RealFn::new(c"__register_atfork");

/// Looks up the real function.
pub fn prepare() {
    REGISTER.get();
}

type Handler = Option<unsafe extern "C" fn()>;
type Register = unsafe extern "C" fn(Handler, Handler, Handler, *mut c_void) -> c_int;

/// Registers handlers of an object for fork(2) (glibc's `sysdeps/pthread/register-atfork.c`).
///
/// # Safety
/// As the real function requires.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __register_atfork(
    before: Handler,
    in_parent: Handler,
    in_child: Handler,
    object: *mut c_void,
) -> c_int {
    let next = REGISTER.get();
    if next.is_null() {
        return libc::ENOMEM;
    }
    // SAFETY: the function of this name, called with what its caller gave.
    let result =
        unsafe { std::mem::transmute::<*mut c_void, Register>(next)(before, in_parent, in_child, object) };
    lifecycle::fork::watch_outside();
    result
}
