//! HTTP/1.1: heads and bodies of requests, and answers, from bytes and to bytes. Not here: sockets.

pub(crate) mod answer;
pub(crate) mod chunked;
pub(crate) mod head;
