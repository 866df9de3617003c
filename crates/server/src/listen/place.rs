//! Places to listen at, and paths with placeholders. Not here: how variables spell them.

use super::Identity;
use std::net::SocketAddr;

/// A place to listen at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A Unix socket in the first of the default [`super::Directories`] that works.
    Default,
    /// A Unix socket with this path.
    Path(Pattern),
    /// A Unix socket with this name in the kernel's abstract namespace (unix(7)).
    Abstract(Pattern),
    /// TCP.
    Tcp(SocketAddr),
}

/// A path or name with placeholders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern(Vec<Piece>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Text(Vec<u8>),
    Pid,
    Uuid,
    Hostname,
    Comm,
}

impl Pattern {
    /// A pattern without placeholders, whatever `text` has in it.
    pub fn literal(text: &[u8]) -> Pattern {
        Pattern(vec![Piece::Text(text.to_vec())])
    }

    /// Reads `{PID}`, `{UUID}`, `{HOSTNAME}` and `{COMM}`. Other words in braces are
    /// an error, so that a slip of the pen does not become part of a path.
    pub fn parse(text: &[u8]) -> Result<Pattern, String> {
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some(open) = rest.iter().position(|b| *b == b'{') {
            let (before, from_brace) = rest.split_at(open);
            let Some(close) = from_brace.iter().position(|b| *b == b'}') else {
                return Err("a { is not closed".to_owned());
            };
            let (word, after) = from_brace.split_at(close + 1);
            if !before.is_empty() {
                pieces.push(Piece::Text(before.to_vec()));
            }
            pieces.push(match word {
                b"{PID}" => Piece::Pid,
                b"{UUID}" => Piece::Uuid,
                b"{HOSTNAME}" => Piece::Hostname,
                b"{COMM}" => Piece::Comm,
                other => {
                    return Err(format!(
                        "{} is not one of {{PID}}, {{UUID}}, {{HOSTNAME}}, {{COMM}}",
                        String::from_utf8_lossy(other)
                    ));
                }
            });
            rest = after;
        }
        if !rest.is_empty() {
            pieces.push(Piece::Text(rest.to_vec()));
        }
        Ok(Pattern(pieces))
    }

    /// The pattern with its placeholders filled in. Slashes and NUL bytes of names
    /// become `_`: a thread's name must not choose a directory.
    pub fn expand(&self, identity: &Identity) -> Vec<u8> {
        let mut out = Vec::new();
        let name = |text: &str, out: &mut Vec<u8>| {
            out.extend(text.bytes().map(|b| match b {
                b'/' | 0 => b'_',
                other => other,
            }));
        };
        for piece in &self.0 {
            match piece {
                Piece::Text(text) => out.extend_from_slice(text),
                Piece::Pid => out.extend_from_slice(identity.pid.to_string().as_bytes()),
                Piece::Uuid => name(&identity.uuid, &mut out),
                Piece::Hostname => name(&identity.hostname, &mut out),
                Piece::Comm => name(&identity.comm, &mut out),
            }
        }
        out
    }
}
