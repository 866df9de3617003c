//! `libswipr.so`: the profiler as a shared library, with the functions of `include/swipr.h`.
//!
//! Here is what a Rust program does not need: a constructor, the C interface, functions that stand
//! in front of the C library's, a heap, a silent panic hook. All else is in `crates/profiler`.
//!
//! A package of its own because Cargo optimizes across crates only where nothing but the shared
//! library is made of one: beside a Rust library of the same package it was twice the size it is.

mod constructor;
mod ffi;
mod heap;
mod interpose;
mod last_error;
mod ld_preload;
mod own_imports;
mod prepare;
mod recording_handles;

#[cfg_attr(not(test), global_allocator)]
#[cfg_attr(test, expect(dead_code, reason = "tests hold its lock while they need memory"))]
static HEAP: heap::Heap = heap::Heap::new();
