//! Rules that the workspace's own sources must keep, read from the sources and from Cargo.
//!
//! `tests/layers.rs` has a test for each rule. What a rule allows, and what does not hold yet, is
//! in `lists/`, with a reason in each line. An entry that is no longer needed fails the test as
//! well.

mod arrows;
mod comments;
mod idents;
pub mod list;
pub mod rules;
mod test_code;
pub mod workspace;
