//! Paths under a random token, for the page of profiler.firefox.com: it asks from a user's browser for names, source files and
//! instructions. Who was not given the token cannot ask, and no other web page hears an answer.

use super::access;
use super::answer::Answer;
use super::head::{Head, Method};
use crate::config::Identity;
use crate::symbol_server::Kind;
use std::net::SocketAddr;
use std::sync::OnceLock;

/// The page.
const ORIGIN: &str = "https://profiler.firefox.com";
/// What is there, and how it is asked for.
static PATHS: [(&str, Kind); 3] =
    [("/symbolicate/v5", Kind::Symbolicate), ("/source/v1", Kind::Source), ("/asm/v1", Kind::Assembly)];

/// What becomes of a request.
#[derive(Debug)]
pub(super) enum Asked {
    /// It is answered at once.
    Answer(Answer),
    /// Somebody is to look that up.
    Question(Kind),
}

/// The token of this process, from its first use on.
pub(super) fn token() -> &'static str {
    static TOKEN: OnceLock<String> = OnceLock::new();
    TOKEN.get_or_init(|| Identity::of_this_process().uuid)
}

/// The path behind the token.
pub(super) fn path(head: &Head) -> Option<&str> {
    let (token, _) = head.path.strip_prefix('/')?.split_once('/')?;
    access::is_same(token, self::token()).then(|| head.path.get(token.len() + 1..)).flatten()
}

/// Whether a request by TCP to our address `local` may be answered.
pub(super) fn check_tcp(head: &Head, local: SocketAddr) -> Result<(), Answer> {
    let is_page = head.origin.as_deref().is_none_or(|origin| origin == ORIGIN);
    match is_page && access::is_our_name(head.host.as_deref().unwrap_or_default(), local) {
        true => Ok(()),
        false => Err(Answer::problem(403, format!("only {ORIGIN} may ask here, and by this address"))),
    }
}

/// What a request for a path behind the token is answered with.
pub(super) fn follow(path: &str, method: Method) -> Asked {
    let known = PATHS.iter().find(|(known, _)| *known == path);
    match (known, method) {
        (None, _) => {
            Asked::Answer(allowed(Answer::problem(404, format!("there is no {path} under this token"))))
        }
        (Some(_), Method::Options) => Asked::Answer(preflight()),
        (Some((_, kind)), Method::Post) => Asked::Question(*kind),
        _ => {
            let answer = Answer::problem(405, format!("{path} takes POST only"));
            Asked::Answer(allowed(answer.header("Allow", "POST, OPTIONS")))
        }
    }
}

/// Browsers ask first.
fn preflight() -> Answer {
    let answer = Answer::text("").header("Access-Control-Allow-Methods", "POST, OPTIONS");
    let answer = answer.header("Access-Control-Allow-Headers", "Content-Type");
    let answer = answer.header("Access-Control-Allow-Private-Network", "true");
    allowed(answer.header("Access-Control-Max-Age", "600"))
}

/// The page may read it.
pub(super) fn allowed(answer: Answer) -> Answer {
    answer.header("Access-Control-Allow-Origin", ORIGIN).header("Vary", "Origin")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::head::{self, Parsed};

    fn head_of(path: &str, headers: &str) -> Head {
        match head::parse(format!("POST {path} HTTP/1.1\r\n{headers}\r\n").as_bytes()) {
            Parsed::Complete(head, _) => *head,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn only_paths_behind_the_token_are_of_the_page() {
        let under = format!("/{}/asm/v1", token());
        assert_eq!(path(&head_of(&under, "")), Some("/asm/v1"));
        for other in ["/asm/v1", "/", "/x/asm/v1", &format!("/{}", token()), &format!("//{}/asm/v1", token())]
        {
            assert_eq!(path(&head_of(other, "")), None, "{other}");
        }
    }

    #[test]
    fn by_tcp_the_page_may_ask_and_no_other_one_and_by_our_name_only() {
        let local = "127.0.0.1:7377".parse().unwrap();
        let may = |headers: &str| check_tcp(&head_of("/", headers), local).is_ok();
        assert!(may("Host: localhost:7377\r\nOrigin: https://profiler.firefox.com\r\n"));
        assert!(may("Host: 127.0.0.1:7377\r\n"));
        assert!(!may("Host: localhost:7377\r\nOrigin: https://evil.example\r\n"));
        assert!(!may("Host: localhost:7377\r\nOrigin: http://profiler.firefox.com\r\n"));
        assert!(!may("Host: rebound.example\r\nOrigin: https://profiler.firefox.com\r\n"));
    }
}
