//! The HTTP server on the agent's socket: one thread. It sleeps while no client sends, except for
//! what the recorder does once a second ([`recording::Recorder::poll`]).
//!
//! It reads requests, has a [`recording::Recorder`] make recordings and moves their bytes. It makes
//! no sample, looks up no name, reads no file of the host, and waits nowhere but in its poller. The
//! documentation for clients is `docs/http.md`.

mod auth;
mod connection;
mod event_loop;
#[cfg(test)]
#[path = "../../../tests/generated.rs"]
mod generated;
pub mod listen;
#[cfg(feature = "fuzzing")]
pub mod opened;
pub mod percent;
pub mod pipe;
mod proto;
pub mod recording;
mod routes;
mod server;
mod settings;
pub mod wake_server;

pub use event_loop::EventLoop;
pub use routes::parameters::{regex, title};
pub use server::Server;
pub use settings::{Limits, Settings};

use swipr_os::atomic;
