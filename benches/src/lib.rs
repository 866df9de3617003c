//! What the benches share: clocks, figures, synthetic stacks, peers, measured children.
//!
//! Each program in `bin/` measures one thing beside its peers and prints a table;
//! `docs/performance.md` holds what they printed. Nothing here asserts a time: a bench prints,
//! people judge.
//!
//! The crate is a shared library, too ([`preloaded`]), which the `agreement` bench loads into real
//! programs.

pub mod asking;
pub mod bars;
pub mod busy;
pub mod children;
pub mod client;
pub mod comparison;
pub mod crowd;
pub mod figures;
pub mod hold;
pub mod machine;
pub mod outside;
pub mod overhead;
pub mod peers;
pub mod preloaded;
pub mod programs;
pub mod recorded_by;
pub mod recorder;
pub mod synthetic;
pub mod target;
pub mod ticks;
pub mod walking;
