//! The shared library starts itself when it was preloaded.
//!
//! Only then: a program that is linked with it calls `swipr_start` when it wants to. A program with more rights than
//! its user is left alone.

use crate::config::{AUTOSTART, Config};
use crate::platform::{errno, process};
use crate::{agent_threads, fork, frame_registration, life, log};
use std::ffi::OsStr;
use std::path::Path;

extern "C" fn on_load() {
    errno::kept(|| {
        let _ = std::panic::catch_unwind(|| {
            // The default hook would print to the host's stderr.
            agent_threads::watch_panics();
            fork::watch();
            frame_registration::prepare();
            if is_wanted(&|name| std::env::var_os(name)) && !process::is_privileged() {
                match Config::from_environment() {
                    Ok(config) => {
                        let _ = life::start(config, life::Wait::No);
                    }
                    Err(error) => log::always(format_args!("not profiled: {error}")),
                }
            }
        });
    });
}

#[used]
#[cfg_attr(target_os = "linux", unsafe(link_section = ".init_array"))]
static ON_LOAD: extern "C" fn() = on_load;

/// Whether LD_PRELOAD names us, or SWIPR_AUTOSTART asks (for /etc/ld.so.preload).
fn is_wanted(variable: &dyn Fn(&str) -> Option<std::ffi::OsString>) -> bool {
    let names_us = |list: &OsStr| {
        list.to_string_lossy().split([':', ' ']).any(|path| {
            let file = Path::new(path).file_name().and_then(OsStr::to_str);
            file.is_some_and(|file| file.starts_with("libswipr"))
        })
    };
    variable("LD_PRELOAD").is_some_and(|list| names_us(&list))
        || variable(AUTOSTART).is_some_and(|value| value == "1")
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
    }
}
