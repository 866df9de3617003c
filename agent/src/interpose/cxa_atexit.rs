//! `__cxa_atexit`, which atexit(3) calls and destructors of C++ are registered by, interposed where
//! the library is preloaded. Each call is passed on, and its result returned. Behind each handler
//! the agent's own is registered, so that it runs before all of them; `lifecycle/exit.rs` says why.
//! May be called before the constructor.

use crate::interpose::real_fn::RealFn;
use profiler::for_library::lifecycle;
use std::ffi::{c_int, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

static REGISTER: RealFn = RealFn::new(c"__cxa_atexit");
/// The library has started the agent; a program that starts it says itself when it ends.
static IS_WATCHED: AtomicBool = AtomicBool::new(false);

/// Looks up the real function.
pub fn prepare() {
    REGISTER.get();
}

/// The agent's handler is registered from now on.
pub fn watch() {
    IS_WATCHED.store(true, Relaxed);
}

type ExitHandler = Option<unsafe extern "C" fn(*mut c_void)>;
type AtExit = unsafe extern "C" fn(ExitHandler, *mut c_void, *mut c_void) -> c_int;

/// Registers a function that is called at exit, or when its object is unloaded (Itanium C++ ABI,
/// 3.3.6.3).
///
/// # Safety
/// As the real function requires.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __cxa_atexit(
    handler: ExitHandler,
    argument: *mut c_void,
    object: *mut c_void,
) -> c_int {
    let next = REGISTER.get();
    if next.is_null() {
        return -1;
    }
    // SAFETY: the function of this name.
    let register = unsafe { std::mem::transmute::<*mut c_void, AtExit>(next) };
    // SAFETY: called with what its caller gave.
    let result = unsafe { register(handler, argument, object) };
    if IS_WATCHED.load(Relaxed) {
        // SAFETY: the handler stays where it is: the library cannot be unloaded.
        unsafe { register(Some(lifecycle::before_handlers), null_mut(), null_mut()) };
    }
    result
}
