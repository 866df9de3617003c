//! A store's address as it is given with `--url`: read once, before anything is recorded.

use std::net::Ipv6Addr;

/// How a store is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scheme {
    Http,
    Https,
}

/// See the module's text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct StoreUrl<'a> {
    pub(super) scheme: Scheme,
    /// Host and perhaps a port. For curl there may be a user, too.
    authority: &'a str,
    /// What stands before the protocol's own path.
    pub(super) path: &'a str,
}

impl<'a> StoreUrl<'a> {
    /// None: nothing can be sent there.
    pub(super) fn parse(url: &'a str) -> Option<StoreUrl<'a>> {
        let (scheme, rest) = match url.strip_prefix("https://") {
            Some(rest) => (Scheme::Https, rest),
            None => (Scheme::Http, url.strip_prefix("http://")?),
        };
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let in_text = |c: char| !c.is_whitespace() && !c.is_control() && !"?#\\".contains(c);
        let place = match scheme {
            Scheme::Http => authority,
            Scheme::Https => authority.rsplit('@').next()?,
        };
        let (host, port) = host_and_port(place)?;
        let is_right = is_host(host) && port.is_none_or(|port| port.parse::<u16>().is_ok());
        let path = path.trim_end_matches('/');
        (is_right && rest.chars().all(in_text)).then_some(StoreUrl { scheme, authority, path })
    }

    /// Host and port. That of `https://` is left to curl.
    pub(super) fn authority(&self, port: u16) -> String {
        match (self.scheme, host_and_port(self.authority)) {
            (Scheme::Http, Some((host, None))) => format!("{host}:{port}"),
            _ => self.authority.to_owned(),
        }
    }
}

/// `HOST[:PORT]`, `[IPV6][:PORT]`.
fn host_and_port(authority: &str) -> Option<(&str, Option<&str>)> {
    let end = if authority.starts_with('[') { authority.find(']')? + 1 } else { 0 };
    match authority.get(end..)?.split_once(':') {
        Some((rest, port)) => Some((authority.get(..end + rest.len())?, Some(port))),
        None => Some((authority, None)),
    }
}

/// A name, or an address; one of IPv6 stands in brackets.
fn is_host(host: &str) -> bool {
    match host.strip_prefix('[') {
        Some(rest) => rest.strip_suffix(']').is_some_and(|address| {
            let (address, _zone) = address.split_once('%').unwrap_or((address, ""));
            address.parse::<Ipv6Addr>().is_ok()
        }),
        None => !host.is_empty() && !host.contains(['@', '[', ']', ':']),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_that_is_missing_is_the_protocols() {
        let of = |url| StoreUrl::parse(url).map(|url| (url.authority(4040), url.path));
        for (url, authority, path) in [
            ("http://localhost", "localhost:4040", ""),
            ("http://10.0.0.1:80/a/b/", "10.0.0.1:80", "/a/b"),
            // It was sent to nobody, again and again.
            ("http://[::1]", "[::1]:4040", ""),
            ("http://[fe80::1%2]:80/", "[fe80::1%2]:80", ""),
            ("https://a.example", "a.example", ""),
            ("https://user:secret@a.example:8443/x", "user:secret@a.example:8443", "/x"),
        ] {
            assert_eq!(of(url), Some((authority.to_owned(), path)), "{url}");
        }
    }

    #[test]
    fn where_nothing_can_be_sent_to_is_refused() {
        for url in [
            "localhost:4040",
            "ftp://localhost",
            "http://",
            "http:///path",
            "http://:80",
            "http://user:secret@localhost",
            "http://user@localhost:80",
            "http://localhost:",
            "http://localhost:http",
            "http://localhost:70000",
            "http://::1",
            "http://[::1",
            "http://[::1]80",
            "http://[localhost]:80",
            "http://local host",
            "http://localhost/a?b=c",
            "http://localhost/a\r\nX: y",
            "https://",
            "https://a.example:port",
        ] {
            assert_eq!(StoreUrl::parse(url), None, "{url}");
        }
    }
}
