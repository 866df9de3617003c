//! The server as clients see it: a real one on a real socket, with a recorder that does what the
//! request's title says.

mod access;
mod clients;
mod requests;
mod support;
mod viewers;
