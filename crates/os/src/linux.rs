//! Linux.

pub mod claim;
pub mod cpu_timers;
pub mod cpus;
pub mod descriptors;
pub mod directory;
pub mod event;
pub mod file_system;
pub mod fork_gate;
pub mod futex;
pub mod host_thread;
pub mod inherited_sandbox;
pub mod loader_lock;
pub mod maps;
pub mod memory;
pub mod objects;
pub mod process;
pub mod run_delay;
pub mod signals;
pub mod stdio;
pub mod swift;
pub mod this_library;
pub mod threads;
pub mod timer_delivery;
