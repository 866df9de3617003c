//! The demangler of Swift's runtime, where the program came with one: nothing else knows what
//! Swift's names mean.
//!
//! It is looked for once, by the thread that starts the agent. So no thread of the agent waits for
//! the loader, whose lock may be held by a thread that forks. What was loaded with the program is
//! never unloaded. A runtime that is loaded later (as a plug-in's) is not used. The demangler runs
//! on a thread of the agent and allocates from the program's heap, as any thread of the program
//! does.

use std::ffi::{CStr, CString, c_char};
use std::sync::OnceLock;

/// `swift_demangle` (Swift's `stdlib/public/runtime/Demangle.cpp`): name, its bytes, room for the
/// result, its bytes, flags of which there are none.
type Demangle = unsafe extern "C" fn(*const c_char, usize, *mut c_char, *mut usize, u32) -> *mut c_char;

/// What was found; empty: not looked for yet.
static RUNTIME: OnceLock<Option<Demangle>> = OnceLock::new();

/// Bytes of a readable name, at most.
const ROOM: usize = 16 << 10;

/// The readable form of a name; `None`: there is no runtime, or it does not know the name, or the
/// readable form is too long.
pub fn demangle(name: &str) -> Option<String> {
    let demangle = (*RUNTIME.get()?)?;
    let mangled = CString::new(name).ok()?;
    let mut readable = vec![0_u8; ROOM];
    let mut bytes = readable.len();
    // SAFETY: by its declaration above the function reads `name.len()` bytes and their NUL, and
    // writes no more than `bytes` into the room that it is given.
    let given =
        unsafe { demangle(mangled.as_ptr(), name.len(), readable.as_mut_ptr().cast(), &raw mut bytes, 0) };
    // It reports how many bytes it would have taken.
    if given.is_null() || bytes > readable.len() {
        return None;
    }
    let text = CStr::from_bytes_until_nul(&readable).ok()?;
    Some(text.to_string_lossy().into_owned())
}

/// Looks for the runtime, the first time that this is called. Enters the dynamic linker.
pub fn find_demangler() {
    RUNTIME.get_or_init(|| {
        // SAFETY: the name ends in a NUL.
        let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"swift_demangle".as_ptr()) };
        // SAFETY: what Swift's runtime exports under this name has this type since Swift 4.
        (!found.is_null()).then(|| unsafe { std::mem::transmute::<*mut libc::c_void, Demangle>(found) })
    });
}
