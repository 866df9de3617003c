//! Paths under a random token, for the page of profiler.firefox.com. From a user's browser the page
//! requests names, source files and instructions, and a recording. A client without the token
//! cannot use these paths, and no other web page can read an answer.

use crate::auth::access;
use crate::listen::Identity;
use crate::proto::answer::{Answer, FIREFOX_PROFILER, Readers};
use crate::proto::head::{Head, Method};
use crate::recording::QuestionKind;
use std::net::SocketAddr;
use std::sync::OnceLock;

/// Paths of the symbol server, and the kind of question that each one is.
static QUESTIONS: [(&str, QuestionKind); 3] = [
    ("/symbolicate/v5", QuestionKind::Symbolicate),
    ("/source/v1", QuestionKind::Source),
    ("/asm/v1", QuestionKind::Assembly),
];
/// A recording, as by the route of that name.
pub(crate) const PROFILE: &str = "/profile.json";

/// What becomes of a request.
#[derive(Debug)]
pub(crate) enum TokenRoute {
    /// This answer, at once.
    Answer(Answer),
    /// A question for the symbol server's thread.
    Question(QuestionKind),
}

/// The token of this process, from its first use on.
pub(crate) fn token() -> &'static str {
    static TOKEN: OnceLock<String> = OnceLock::new();
    TOKEN.get_or_init(|| Identity::of_this_process().uuid)
}

/// If the request's path is behind the token: the request for that path alone, whose answer the
/// page may read.
pub(crate) fn firefox_request(head: &Head) -> Option<Head> {
    let (token, path) = head.path.strip_prefix('/')?.split_once('/')?;
    let of_page = || Head { path: format!("/{path}"), readers: Readers::FirefoxProfiler, ..head.clone() };
    access::is_same(token, self::token()).then(of_page)
}

/// Whether a request by TCP to the agent's address `local` may be answered.
pub(crate) fn check_tcp(head: &Head, local: SocketAddr) -> Result<(), Answer> {
    let is_page = head.origin.as_deref().is_none_or(|origin| origin == FIREFOX_PROFILER);
    match is_page && access::is_our_name(head.host.as_deref().unwrap_or_default(), local) {
        true => Ok(()),
        false => {
            Err(Answer::problem(403, format!("only {FIREFOX_PROFILER} may ask here, and by this address")))
        }
    }
}

/// How to answer a request behind the token; `None`: as the route of that path does.
pub(crate) fn follow(head: &Head) -> Option<TokenRoute> {
    let path = head.path.as_str();
    let question = QUESTIONS.iter().find(|(known, _)| *known == path);
    let methods = if path == PROFILE { "GET, HEAD, OPTIONS" } else { "POST, OPTIONS" };
    let answer = match (question, head.method) {
        (None, _) if path != PROFILE => Answer::problem(404, format!("there is no {path} under this token")),
        (_, Method::Options) => preflight(methods),
        (None, Method::Get | Method::Head) => return None,
        (Some((_, kind)), Method::Post) => return Some(TokenRoute::Question(*kind)),
        _ => Answer::problem(405, format!("{path} takes {methods} only")).header("Allow", methods),
    };
    Some(TokenRoute::Answer(answer))
}

/// The answer to a browser's preflight request (CORS).
fn preflight(methods: &'static str) -> Answer {
    let answer = Answer::text("").header("Access-Control-Allow-Methods", methods);
    let answer = answer.header("Access-Control-Allow-Headers", "Content-Type");
    let answer = answer.header("Access-Control-Allow-Private-Network", "true");
    answer.header("Access-Control-Max-Age", "600")
}

/// The URL that has the page open a recording of this process, which listens at `here`, and send it
/// further requests.
pub(crate) fn link(here: &str) -> String {
    let under = format!("{here}/{}", token());
    let quoted =
        |text: &str| text.replace(':', "%3A").replace('/', "%2F").replace('?', "%3F").replace('=', "%3D");
    let (profile, symbols) = (quoted(&format!("{under}{PROFILE}?seconds=10")), quoted(&under));
    format!("{FIREFOX_PROFILER}/from-url/{profile}/?symbolServer={symbols}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::head::{self, Parsed};

    fn head_of(path: &str, headers: &str) -> Head {
        match head::parse(format!("POST {path} HTTP/1.1\r\n{headers}\r\n").as_bytes()) {
            Parsed::Complete(head, _) => *head,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn only_paths_behind_the_token_are_of_the_page() {
        let under = format!("/{}/asm/v1", token());
        let behind = firefox_request(&head_of(&under, "")).map(|head| (head.path, head.readers));
        assert_eq!(behind, Some(("/asm/v1".to_owned(), Readers::FirefoxProfiler)));
        for other in ["/asm/v1", "/", "/x/asm/v1", &format!("/{}", token()), &format!("//{}/asm/v1", token())]
        {
            assert_eq!(firefox_request(&head_of(other, "")), None, "{other}");
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
