//! What the viewer is given: the profile, and answers of a symbol server
//! (`crates/symbols/src/symbol_api.rs`). On loopback, under a path that cannot be guessed, to that
//! page only.

use super::VIEWER;
use crate::serve::{ServedRequest, answer};
use serde_json::{Value, json};
use std::io::{self, Read};
use std::net::TcpStream;
use swipr_offline::Modules;
use swipr_symbols::symbol_api;

/// Longest question.
const LONGEST: u64 = 16 << 20;

/// See the module's text.
pub(super) struct Served {
    profile: Vec<u8>,
    modules: Modules,
    /// Where the profile is, and the symbol server.
    profile_path: String,
    base: String,
}

impl Served {
    pub(super) fn new(profile: Vec<u8>, modules: Modules, token: &str, suffix: &str) -> Served {
        let base = format!("/{token}");
        Served { profile, modules, profile_path: format!("{base}/profile.{suffix}"), base }
    }

    /// Answers one request; a client that went away is no loss.
    pub(super) fn answer(&self, stream: TcpStream) {
        if let Ok(mut request) = ServedRequest::read(stream) {
            let _ = self.respond(&mut request);
        }
    }

    fn respond(&self, request: &mut ServedRequest) -> io::Result<()> {
        let of_server = request.target.strip_prefix(&self.base).unwrap_or_default().to_owned();
        let is_profile = request.target == self.profile_path;
        let is_question = ["/symbolicate/v5", "/source/v1", "/asm/v1"].contains(&&*of_server);
        let wanted = if is_question { "POST" } else { "GET" };
        let kind = if is_question { "application/json" } else { "application/octet-stream" };
        let allow = [
            ("Access-Control-Allow-Origin", VIEWER),
            ("Access-Control-Allow-Methods", "GET, HEAD, POST, OPTIONS"),
            ("Access-Control-Allow-Headers", "Content-Type"),
            // Asked for by browsers before a public page may load from this machine.
            ("Access-Control-Allow-Private-Network", "true"),
            ("Content-Type", kind),
            ("Cache-Control", "no-store"),
            ("X-Content-Type-Options", "nosniff"),
        ];
        if !request.is_for_loopback() || !(is_profile || is_question) {
            return answer(request.stream(), "404 Not Found", &[], b"");
        }
        match request.method.as_str() {
            "OPTIONS" => answer(request.stream(), "204 No Content", &allow, b""),
            method if method != wanted => {
                answer(request.stream(), "405 Method Not Allowed", &[("Allow", wanted)], b"")
            }
            _ if is_profile => answer(request.stream(), "200 OK", &allow, &self.profile),
            _ => {
                let body = body(request)?;
                let text = self.symbols(&of_server, &body).to_string();
                answer(request.stream(), "200 OK", &allow, text.as_bytes())
            }
        }
    }

    fn symbols(&self, path: &str, question: &[u8]) -> Value {
        let answer = match (path, serde_json::from_slice::<Value>(question)) {
            (_, Err(_)) => Err("the question is no JSON".to_owned()),
            ("/symbolicate/v5", Ok(question)) => symbol_api::symbolicate(&question, &self.modules),
            ("/source/v1", Ok(question)) => symbol_api::source(&question, &self.modules),
            _ => Err("this command has no disassembler".to_owned()),
        };
        answer.unwrap_or_else(|what| json!({ "error": what }))
    }
}

fn body(request: &mut ServedRequest) -> io::Result<Vec<u8>> {
    let length = request.field("content-length").and_then(|length| length.parse::<u64>().ok());
    let length = length.filter(|length| *length <= LONGEST).ok_or(io::ErrorKind::InvalidData)?;
    let mut body = Vec::new();
    request.reader.by_ref().take(length).read_to_end(&mut body)?;
    Ok(body)
}
