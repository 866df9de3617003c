//! The crate in a plugin, which the program loads and unloads.

use std::ffi::CString;
use std::time::Duration;

/// Regression: the program ended by SIGSEGV: the crate's threads and its signal handler were gone.
#[test]
fn a_plugin_that_has_recorded_may_be_unloaded() {
    let own = std::env::current_exe().expect("the test's path");
    let folder = own.parent().and_then(|folder| folder.parent()).expect("the build's folder");
    let path = folder.join("examples/libplugin.so").to_string_lossy().into_owned();
    let path = CString::new(path).expect("a path");
    // SAFETY: a library whose function has this type; it is not called after it was unloaded.
    unsafe {
        let plugin = libc::dlopen(path.as_ptr(), libc::RTLD_NOW);
        assert!(!plugin.is_null(), "{path:?}: cargo build -p swipr --example plugin");
        let record = libc::dlsym(plugin, c"record".as_ptr());
        assert!(!record.is_null());
        let record = std::mem::transmute::<*mut libc::c_void, extern "C" fn() -> i64>(record);
        assert!(record() >= 0);
        assert_eq!(libc::dlclose(plugin), 0);
    }
    // The sampler wakes, and ends by itself.
    std::thread::sleep(Duration::from_millis(300));
}
