//! Puts the viewers' parts (`src/html`) together: what is embedded is short and compressed, and its
//! scripts and style sheets are named by their hashes in a Content-Security-Policy, so that no
//! other script can run in it.

#[path = "build/squeeze.rs"]
mod squeeze;

use sha2::{Digest, Sha256};
use std::path::Path;
use std::{env, fs};

/// More is not allowed of a file without its data.
const MAX_BYTES: usize = 25_000;
/// Between the pages.
const BETWEEN: char = '\u{0}';

fn main() {
    println!("cargo::rerun-if-changed=src/html");
    println!("cargo::rerun-if-changed=build");
    println!("cargo::rerun-if-changed=build.rs");
    let part = |name: &str| {
        let path = Path::new("src/html").join(name);
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    };
    let out = env::var_os("OUT_DIR").expect("cargo says where");
    let out = Path::new(&out);
    let style = squeeze::style(&part("flame.css"));
    let flame = part("flame.js");
    let page = part("page.html");
    let unpack = squeeze::script(&part("unpack.js"));
    let make = |name: &str, style: &str, script: &str, live: &str| {
        let script = squeeze::script(script);
        let allowed = format!("'{}'", hash(&script));
        // The live page is compressed as a whole where it is embedded, a file only in its largest
        // part.
        let (packed, script, allowed) = match live {
            "" => {
                let code = base64(&compressed(&script));
                let packed = format!("<script type=\"text/plain\" id=\"packed\">{code}</script>\n");
                (packed, unpack.clone(), format!("{allowed} '{}'", hash(&unpack)))
            }
            _ => (String::new(), script, allowed),
        };
        let connect = if live.is_empty() { "'none'" } else { "'self'" };
        let policy = format!(
            "default-src 'none'; script-src {allowed}; style-src '{}'; img-src data:; connect-src {connect}; base-uri 'none'; form-action 'none'",
            hash(style)
        );
        let lines: String = page.lines().map(str::trim).collect::<Vec<_>>().join("\n");
        let text = lines
            .replace("{{STYLE}}", style)
            .replace("{{PACKED}}", &packed)
            .replace("{{SCRIPT}}", &script)
            .replace("{{LIVE}}", live)
            // A file has no headers.
            .replace(
                "{{CSP}}",
                &match live {
                    "" => format!("<meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n"),
                    _ => String::new(),
                },
            );
        write(&out.join(format!("{name}.policy")), policy.as_bytes());
        text
    };
    let file = make("file", &style, &format!("{flame}{}", part("file.js")), "");
    let without_data = file.len() - ["{{TITLE}}", "{{DATA}}"].concat().len();
    assert!(
        without_data <= MAX_BYTES,
        "an HTML file has {without_data} bytes without its data: {MAX_BYTES} are allowed"
    );
    let live_style = format!("{style}{}", squeeze::style(&part("live.css")));
    let live_script = format!("{flame}{}", part("live.js"));
    let live = make("live", &live_style, &live_script, part("live.html").trim());
    // One after the other: the second has little that the first has not.
    write(&out.join("pages.deflate"), &compressed(&format!("{file}{BETWEEN}{live}")));
    write(&out.join("svg.js"), squeeze::script(&part("svg.js")).as_bytes());
}

fn write(path: &Path, bytes: &[u8]) {
    fs::write(path, bytes).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}

fn compressed(text: &str) -> Vec<u8> {
    const BEST: u8 = 9;
    miniz_oxide::deflate::compress_to_vec(text.as_bytes(), BEST)
}

/// As a policy names a script: `sha256-` and the digest in base 64.
fn hash(text: &str) -> String {
    format!("sha256-{}", base64(&Sha256::digest(text.as_bytes())))
}

/// RFC 4648.
fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut code = String::new();
    for three in bytes.chunks(3) {
        let bits =
            three.iter().fold(0u32, |bits, &byte| bits << 8 | u32::from(byte)) << (8 * (3 - three.len()));
        for letter in 0..4 {
            let is_there = letter <= three.len();
            let index = bits >> (18 - 6 * letter) & 63;
            code.push(if is_there { char::from(LETTERS[index as usize]) } else { '=' });
        }
    }
    code
}
