//! Authorization of requests: by user; for TCP by token, and against requests that web pages make
//! browsers send.

use crate::percent;
use crate::proto::answer::Answer;
use crate::proto::head::Head;
use std::net::{IpAddr, SocketAddr};

/// Probes of orchestrators have no token.
pub(crate) const HEALTH: &str = "/health";

/// The query parameter that carries the token.
pub(crate) const TOKEN_PARAMETER: &str = "token";

/// Whether requests of that user are answered.
pub(crate) fn is_allowed(uid: u32, own_uid: u32, allowed_uids: &[u32]) -> bool {
    uid == 0 || uid == own_uid || allowed_uids.contains(&uid)
}

/// The answer for a user that is not allowed.
pub(crate) fn forbidden_user(uid: u32) -> Answer {
    Answer::problem(403, format!("user {uid} may not ask this process; SWIPR_ALLOW_UID={uid} would allow it"))
}

/// Checks a request that came by TCP to the agent's address `local`.
///
/// `Origin`, if there is one, must be that of `Host`. If a token is configured, the request must
/// have it, except for `/health`. Without a token, the client's user was checked when it connected
/// (`admission.rs`), and requests that web pages make this user's browser send are refused: `Host`
/// must name this address (after DNS rebinding a page sends its own name), and the browser must not
/// act for another page ([`is_for_other_page`]).
pub(crate) fn check_tcp(head: &Head, local: SocketAddr, token: Option<&str>) -> Result<(), Answer> {
    let host = head.host.as_deref().unwrap_or_default();
    if let Some(origin) = &head.origin
        && origin.strip_prefix("http://") != Some(host)
    {
        return Err(Answer::problem(403, "requests of other web pages are refused"));
    }
    match token {
        Some(token) if has_token(head, token) || head.path == HEALTH => Ok(()),
        Some(_) => {
            let what = "the token is missing or wrong";
            let example = "example: curl -H \"Authorization: Bearer $SWIPR_TOKEN\" …";
            let answer = Answer::problem(401, what).example(example);
            Err(answer.header("WWW-Authenticate", "Bearer"))
        }
        None if !is_our_name(host, local) => {
            let what = format!("the Host header should be localhost or {local}");
            Err(Answer::problem(403, what))
        }
        None if is_for_other_page(head) => {
            let what =
                "requests that another web page makes a browser send are refused; open the address by hand";
            Err(Answer::problem(403, what))
        }
        None => Ok(()),
    }
}

/// Whether another page made a browser send this request: for a picture, a frame, a script, or by a
/// link. Such requests have no `Origin`, and the page cannot read the answer, but a recording would
/// be made. Not all browsers of before 2023 send `Sec-Fetch-Site`: their requests for pictures are
/// recognized by what they accept.
fn is_for_other_page(head: &Head) -> bool {
    match head.fetch_site.as_deref() {
        Some(site) => !["same-origin", "none"].contains(&site),
        None => head.wants_picture,
    }
}

pub(crate) fn is_our_name(host: &str, local: SocketAddr) -> bool {
    // An IPv6 literal is in brackets; a port may follow.
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or(rest),
        None => host.split(':').next().unwrap_or(host),
    };
    if name.eq_ignore_ascii_case("localhost") {
        return local.ip().is_loopback();
    }
    match name.parse::<IpAddr>() {
        Ok(ip) => ip == local.ip() || (ip.is_loopback() && local.ip().is_loopback()),
        Err(_) => false,
    }
}

fn has_token(head: &Head, token: &str) -> bool {
    let bearer = head.authorization.as_deref().and_then(|value| {
        let (scheme, rest) = value.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then_some(rest.trim())
    });
    if let Some(bearer) = bearer {
        return is_same(bearer, token);
    }
    let pairs = percent::query(&head.query).unwrap_or_default();
    let given = pairs.iter().find(|(name, _)| name == TOKEN_PARAMETER);
    given.is_some_and(|(_, value)| is_same(value, token))
}

/// Compares in constant time.
pub(crate) fn is_same(given: &str, token: &str) -> bool {
    let different = given.bytes().zip(token.bytes()).fold(0, |different, (a, b)| different | (a ^ b));
    given.len() == token.len() && std::hint::black_box(different) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_user_root_and_listed_users_may_ask() {
        assert!(is_allowed(1000, 1000, &[]));
        assert!(is_allowed(0, 1000, &[]));
        assert!(is_allowed(7, 1000, &[6, 7]));
        assert!(!is_allowed(8, 1000, &[6, 7]));
        assert!(!is_allowed(1000, 0, &[]), "root's process is not for others");
    }

    #[test]
    fn only_names_of_this_address_are_ours() {
        let local = "127.0.0.1:7377".parse().unwrap();
        for host in ["localhost", "LOCALHOST:7377", "127.0.0.1", "127.0.0.1:1", "[::1]:7377"] {
            assert!(is_our_name(host, local), "{host}");
        }
        for host in ["", "evil.example", "localhost.evil.example", "10.0.0.1", "127.0.0.1.x"] {
            assert!(!is_our_name(host, local), "{host}");
        }
    }
}
