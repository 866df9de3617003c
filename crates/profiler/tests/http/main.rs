//! The server as clients meet it: a real one on a real socket, with a recorder that
//! does what the request's title tells it to.

mod access;
mod clients;
mod requests;
mod support;
mod viewers;
