//! Which users may connect, and which requests are answered.

pub(crate) mod access;
pub(crate) mod admission;
mod tcp_peer;
