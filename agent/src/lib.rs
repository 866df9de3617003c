//! `libswipr.so`: the agent as a shared library, with the functions of `include/swipr.h`.
//!
//! A package of its own because Cargo optimizes across crates only where nothing but the shared
//! library is made of one: beside a Rust library of the same package it was twice the size it is.

#[global_allocator]
static HEAP: agent::heap::Heap = agent::heap::Heap::new();
