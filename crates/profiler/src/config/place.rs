//! Places to listen at, as variables spell them. Not here: opening them.

use std::ffi::OsStr;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::unix::ffi::OsStrExt;
use swipr_server::listen::{Pattern, Place};

/// The port of `http://HOST` without one.
const DEFAULT_PORT: u16 = 7377;

pub(super) const SOCKET_EXAMPLE: &str = "/tmp/app-{PID}.sock";
pub(super) const URL_EXAMPLE: &str = "unix:///tmp/app.sock";
pub(super) const URL_PATTERN_EXAMPLE: &str = "unix:///tmp/app-{PID}.sock";
pub(super) const LISTEN_EXAMPLE: &str = "127.0.0.1:7377";

/// Which TCP addresses are allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Exposure {
    Loopback,
    /// The address is not loopback, but there is no token.
    NeedsToken,
    Anywhere,
}

/// What `{…}` in a URL is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Braces {
    AreText,
    ArePlaceholders,
}

/// What is relative is so to the current directory: the server's thread has another one.
pub(super) fn from_path(path: &[u8]) -> Result<Place, String> {
    if path.starts_with(b"@") {
        return Err("abstract sockets are asked for with SWIPR_LISTEN".to_owned());
    }
    no_nul(path)?;
    let path = std::path::absolute(OsStr::from_bytes(path)).map_err(|error| error.to_string())?;
    Pattern::parse(path.as_os_str().as_bytes()).map(Place::Path)
}

pub(super) fn from_url(url: &str, braces: Braces, exposure: Exposure) -> Result<Place, String> {
    let Some((scheme, rest)) = url.split_once("://") else {
        return Err("it is not a URL".to_owned());
    };
    let path = match scheme.to_ascii_lowercase().as_str() {
        "http" => return tcp(rest, exposure),
        "unix" => {
            if !rest.starts_with('/') {
                return Err("unix:// is followed by an absolute path".to_owned());
            }
            percent_decode(rest)?
        }
        "http+unix" => {
            // The path is in the place of the host name; a URL path may follow.
            let host = rest.split('/').next().unwrap_or(rest);
            let path = percent_decode(if host.is_empty() { rest } else { host })?;
            if !path.starts_with(b"/") {
                return Err("http+unix:// is followed by an absolute path".to_owned());
            }
            path
        }
        other => {
            return Err(format!("{other}:// is not known (unix://, http+unix:// and http:// are)"));
        }
    };
    no_nul(&path)?;
    match braces {
        Braces::AreText => Ok(Place::Path(Pattern::literal(&path))),
        Braces::ArePlaceholders => Pattern::parse(&path).map(Place::Path),
    }
}

pub(super) fn from_listen(text: &str, exposure: Exposure) -> Result<Place, String> {
    if let Some(name) = text.strip_prefix('@') {
        if name.is_empty() {
            return Err("@ is followed by a name".to_owned());
        }
        no_nul(name.as_bytes())?;
        return Pattern::parse(name.as_bytes()).map(Place::Abstract);
    }
    if text.starts_with('/') || text.starts_with("unix:") {
        return Err("the path of a socket belongs in SWIPR_SOCKET".to_owned());
    }
    tcp(text.strip_prefix("http://").unwrap_or(text), exposure)
}

/// `HOST[:PORT][/]`. Names are not looked up: that could wait for a name server.
fn tcp(text: &str, exposure: Exposure) -> Result<Place, String> {
    let authority = text.strip_suffix('/').unwrap_or(text);
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, port),
        _ => (authority, ""),
    };
    let port = match port {
        "" => DEFAULT_PORT,
        digits if digits.bytes().all(|b| b.is_ascii_digit()) => {
            digits.parse().map_err(|_| format!("{digits} is not a port (0 to 65535)"))?
        }
        other => return Err(format!("\"{other}\" is not a port")),
    };
    let bare = host.strip_prefix('[').and_then(|h| h.strip_suffix(']'));
    let address = if host.eq_ignore_ascii_case("localhost") {
        IpAddr::V4(Ipv4Addr::LOCALHOST)
    } else {
        let parsed = match bare {
            Some(v6) => v6.parse().map(IpAddr::V6).ok(),
            None => host.parse().map(IpAddr::V4).ok(),
        };
        parsed.ok_or_else(|| format!("\"{host}\" is neither localhost nor an IP address"))?
    };
    match exposure {
        _ if address.is_loopback() => {}
        Exposure::Anywhere => {}
        Exposure::NeedsToken => {
            return Err("an address that is not loopback needs SWIPR_TOKEN as well".to_owned());
        }
        Exposure::Loopback => {
            return Err(format!(
                "{address} is not loopback; SWIPR_LISTEN_ANY=1 together with SWIPR_TOKEN allows it"
            ));
        }
    }
    Ok(Place::Tcp(SocketAddr::new(address, port)))
}

fn no_nul(bytes: &[u8]) -> Result<(), String> {
    match bytes.contains(&0) {
        true => Err("there is a NUL byte in it".to_owned()),
        false => Ok(()),
    }
}

fn percent_decode(text: &str) -> Result<Vec<u8>, String> {
    swipr_server::percent::percent_decode(text.as_bytes())
        .ok_or_else(|| "a % is not followed by two hexadecimal digits".to_owned())
}
