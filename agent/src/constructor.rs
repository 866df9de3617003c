//! The shared library starts itself when it was preloaded.
//!
//! Only then: a program that is linked with it calls `swipr_start` when it wants to. A program with
//! more rights than its user is left alone.

use crate::interpose::{atfork, exit, fork, register_frame, sigaltstack};
use crate::{ld_preload, own_imports, prepare};
use profiler::for_library::config::{AUTOSTART, Config, ConfigError, Follow, Programs, WaitingFor};
use profiler::for_library::lifecycle;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use swipr_os::this_library::is_this_library;
use swipr_os::{disabled, inherited_sandbox, log, process, this_library};

ctor::declarative::ctor! {
    // SAFETY: nothing that `on_load` calls needs `main` to have started, and no panic leaves it.
    #[ctor(unsafe)]
    fn at_load() {
        on_load();
    }
}

fn on_load() {
    // A child of a profiled program may be for musl, whose loader takes the packaged library. There
    // it does nothing, and its interposed functions pass their calls on.
    if !has_glibc() {
        return;
    }
    own_imports::bind();
    if !is_first_copy() {
        return;
    }
    disabled::contained(|| {
        log::find_stderr();
        atfork::prepare();
        exit::prepare();
        fork::prepare();
        prepare::prepare();
        register_frame::prepare();
        sigaltstack::prepare();
        #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
        {
            crate::interpose::single_threaded::prepare();
            crate::interpose::limits::prepare();
            crate::interpose::privileges::prepare();
            crate::interpose::pthread_create::prepare();
        }
        if is_wanted(&|name| std::env::var_os(name)) && !process::is_privileged() {
            match Config::from_environment() {
                Ok(config) => start(config),
                Err(error) if was_told(&error) => {}
                Err(error) => log::always(format_args!("not profiled: {error}")),
            }
        }
    });
}

/// Whether the parent has the library and the same wrong value: then it has reported it.
fn was_told(error: &ConfigError) -> bool {
    // Not the error's value, which is empty for secrets.
    let value = std::env::var_os(error.variable).unwrap_or_default();
    let entry = [error.variable.as_bytes(), b"=", value.as_bytes()].concat();
    process::has_profiled_parent() && process::has_parent_with(&entry)
}

/// Whether the C library is the one that the library is linked for.
fn has_glibc() -> bool {
    // SAFETY: a C string; the answer is null or the address of the function.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"gnu_get_libc_version".as_ptr()) };
    !found.is_null()
}

/// Whether the library is not loaded a second time, from another file, behind the first.
fn is_first_copy() -> bool {
    // SAFETY: a C string; the answer is null or the address of the function.
    let first = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"swipr_start".as_ptr()) };
    // Opened by dlopen(3), it may be in no scope. A program that takes the function's address may
    // have one for it.
    first.is_null() || this_library::has(first) || this_library::is_of_program(first)
}

/// ThreadSanitizer knows one table of descriptors. It takes the agent's descriptors, which have the
/// same numbers, for the host's, and would report races between the two.
fn has_thread_sanitizer() -> bool {
    // SAFETY: a C string; the answer is null or the address of the function.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"__tsan_init".as_ptr()) };
    !found.is_null()
}

/// valgrind's tools would report errors of the agent's.
fn has_valgrind() -> bool {
    let list = std::env::var_os("LD_PRELOAD").unwrap_or_default();
    list.as_bytes().windows(10).any(|part| part == b"vgpreload_")
}

fn start(config: Config) {
    if inherited_sandbox::is_of_a_profiled_program(config.waiting_recorder.map(WaitingFor::recorder)) {
        return; // without a word: that takes system calls, too
    }
    if has_thread_sanitizer() {
        return config
            .log
            .line("not profiled: ThreadSanitizer would report races with the agent's descriptors");
    }
    if has_valgrind() {
        return config.log.line("not profiled: valgrind would report errors of the agent's");
    }
    let executable =
        if config.programs == Programs::default() { String::new() } else { process::executable() };
    if !config.programs.include(Path::new(&executable), std::env::args_os()) {
        return config
            .log
            .line(format_args!("not profiled: SWIPR_ONLY and SWIPR_SKIP leave {executable} out"));
    }
    if config.follow == Follow::None {
        ld_preload::strip();
    }
    let log = config.log;
    match lifecycle::start(config, lifecycle::Wait::No) {
        Ok(()) => {
            lifecycle::watch_handlers();
            lifecycle::wait_for_recorder();
        }
        Err(error) => log.line(format_args!("not started: {error}")),
    }
}

/// Whether LD_PRELOAD names this library, or SWIPR_AUTOSTART is set (for /etc/ld.so.preload).
/// [`Config::from_environment`] reports any value but 0 and 1.
fn is_wanted(variable: &dyn Fn(&str) -> Option<std::ffi::OsString>) -> bool {
    let has_us = |list: &OsStr| list.as_bytes().split(|byte| b": ".contains(byte)).any(is_this_library);
    variable("LD_PRELOAD").is_some_and(|list| has_us(&list))
        || variable(AUTOSTART).is_some_and(|value| !value.is_empty() && value != "0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starts_only_when_it_was_preloaded() {
        let with = |name: &'static str, value: &'static str| {
            is_wanted(&move |asked| (asked == name).then(|| value.into()))
        };
        assert!(with("LD_PRELOAD", "/usr/lib/libswipr.so"));
        assert!(with("LD_PRELOAD", "libjemalloc.so.2 /opt/swipr/libswipr.so.0"));
        assert!(with("LD_PRELOAD", "a.so:libswipr.so"));
        assert!(!with("LD_PRELOAD", "/opt/libswipr.so.d/libjemalloc.so"));
        assert!(!with("PATH", "libswipr.so"));
        assert!(with("SWIPR_AUTOSTART", "1"));
        assert!(!with("SWIPR_AUTOSTART", "0"));
        assert!(!with("SWIPR_AUTOSTART", ""));
        assert!(with("SWIPR_AUTOSTART", "x"), "it was silent");
    }
}
