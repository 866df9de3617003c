//! A request by the installed curl: TLS, certificates and proxies are its business. What may be
//! secret is in no argument, which others could see.

use crate::http::{self, Answer};
use crate::temp_dir::Folder;
use std::io::{self, Write};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Whether there is one.
pub(super) fn is_there() -> bool {
    let asked = Command::new("curl").arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).status();
    asked.is_ok_and(|status| status.success())
}

/// Sends a POST and reads the answer's head; its body is here already.
pub(super) fn post(
    url: &str,
    headers: &[(&str, &str)],
    body: &[u8],
    timeout: Duration,
) -> io::Result<Answer<io::Cursor<Vec<u8>>>> {
    let folder = Folder::new()?;
    let file = folder.path().join("body");
    std::fs::write(&file, body)?;
    let mut child = Command::new("curl")
        .args(["--config", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let text = config(url, headers, &format!("@{}", file.display()), timeout);
    let written = child.stdin.take().map_or(Ok(()), |mut input| input.write_all(text.as_bytes()));
    let output = child.wait_with_output()?;
    written?;
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        return Err(io::Error::other(errors.lines().next().unwrap_or("curl failed").to_owned()));
    }
    http::answer(io::Cursor::new(output.stdout))
}

/// What curl reads as its options (curl(1), --config).
fn config(url: &str, headers: &[(&str, &str)], data: &str, timeout: Duration) -> String {
    // The answer comes as it is, head and chunks; nothing before it.
    let mut text =
        "silent\nshow-error\ninclude\nraw\nhttp1.1\nsuppress-connect-headers\nheader = \"Expect:\"\n"
            .to_owned();
    let mut set = |option: &str, value: &str| {
        let value = value.replace('\\', "\\\\").replace('"', "\\\"");
        text.push_str(&format!("{option} = \"{value}\"\n"));
    };
    set("url", url);
    set("max-time", &timeout.as_secs().to_string());
    set("data-binary", data);
    for (name, value) in headers {
        set("header", &format!("{name}: {value}"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_quoted_cannot_become_another_option() {
        let text = config("https://a/\"b", &[("X", "\\\"")], "@/x", Duration::from_secs(20));
        assert!(text.contains("url = \"https://a/\\\"b\"\n"), "{text}");
        assert!(text.contains("header = \"X: \\\\\\\"\"\n"), "{text}");
        assert!(text.contains("max-time = \"20\"\n"), "{text}");
    }
}
