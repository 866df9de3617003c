//! The runner of the C programs: one small program per way to hurt a host, sampled
//! through the agent's socket and checked against what its comments expect.
//!
//! The programs lie in `programs/`, the tests in `tests/`; here is what they share.
//! This is test code: a failure ends the test at once, with a message that says what
//! was done to what. Nothing here is part of the product, and nothing here knows how
//! the agent works: it sees a library to preload, a socket, and text.

pub mod agent;
pub mod browser;
pub mod container;
pub mod directory;
pub mod examples;
pub mod expectation;
pub mod firefox;
pub mod harness;
pub mod host;
pub mod http;
pub mod interpreted;
pub mod newer_c_library;
pub mod npm;
pub mod program;
pub mod recording;
pub mod speedscope;
pub mod truth;
