//! The pages that `build.rs` embeds. Not here: what stands in them.

use miniz_oxide::inflate::decompress_to_vec;

/// The pages, compressed together.
static PAGES: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/pages.deflate"));

/// A page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Template {
    /// That of an HTML file.
    File = 0,
    /// That which shows what a process does now.
    Live = 1,
}

/// The only scripts, styles and places that the live page may use, for its Content-Security-Policy
/// header.
pub static LIVE_POLICY: &str = include_str!(concat!(env!("OUT_DIR"), "/live.policy"));

impl Template {
    /// The page with its title, and with JSON for its script.
    pub(crate) fn with(self, title: &str, data: &str) -> String {
        // What was compressed when this was built is whole.
        let pages = decompress_to_vec(PAGES).unwrap_or_default();
        let pages = String::from_utf8_lossy(&pages);
        let text = pages.split('\0').nth(self as usize).unwrap_or("");
        let (before, rest) = text.split_once("{{TITLE}}").unwrap_or((text, ""));
        let (between, after) = rest.split_once("{{DATA}}").unwrap_or((rest, ""));
        [before, &escaped(title), between, &in_script(data), after].concat()
    }
}

/// Text for HTML, XML and their attributes.
pub(crate) fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            // Not allowed in XML, not even as references.
            '\u{0}'..='\u{8}' | '\u{b}' | '\u{c}' | '\u{e}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => {
                safe.push('_')
            }
            other => safe.push(other),
        }
    }
    safe
}

/// JSON that no tag can end: `<` is written so that only JSON's reader sees it.
fn in_script(json: &str) -> String {
    json.replace('<', "\\u003c")
}
