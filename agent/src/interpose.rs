//! Functions of the C library that the preloaded library stands in front of, each for one reason.
//! Every call is passed on ([`real_fn`]).

pub mod atfork;
pub mod exit;
pub mod fork;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub mod limits;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub mod privileges;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub mod pthread_create;
mod real_fn;
pub mod register_frame;
pub mod sigaltstack;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub mod single_threaded;
