//! What may run in a signal handler, or on a stack of the host.
//!
//! `no_std`, no dependency, no allocation, no panic, no libc, no thread-local, no
//! lock: a handler that needs any of these can freeze or kill the program it
//! interrupts. `link-gate/` links this crate against nothing to prove it.
//!
//! The way through: [`handler`] takes the interrupted [`registers`], [`walk`]s the
//! stack with the rules of the published [`table`]s (through the [`cache`]),
//! reading [`memory`] in bounds, and leaves the frames in the [`slot`] that the
//! sender chose. The sampler thread uses the same walk for blocked threads, over
//! a copy of their stacks.
#![no_std]

pub mod arch;
mod atomic;
pub mod cache;
pub mod cfi_machine;
mod cfi_reader;
pub mod code_cache;
pub mod dwarf;
pub mod expression;
mod fde;
pub mod frame_runs;
pub mod frames;
pub mod handler;
pub mod memory;
pub mod prologue;
pub mod published;
mod range;
pub mod register_rules;
pub mod register_table;
pub mod registers;
pub mod rule;
pub mod sections;
pub mod slot;
pub mod system_call;
pub mod table;
pub mod walk;
pub mod x86_code;
