//! Perf maps: `START SIZE name` a line, numbers hexadecimal with or without `0x`, names with blanks
//! (`tools/perf/Documentation/jit-interface.txt` of Linux). No times: a later line wins over an
//! earlier one.

use super::code_map::{CodeMap, Function};
use std::sync::Arc;

/// Longer names are cut: they are of no use, and a file without an end of a line has one.
pub const MAX_NAME_BYTES: usize = 4096;
/// A line that is longer than this has no end.
pub const MAX_LINE_BYTES: usize = 256 << 10;

/// Adds what whole lines say, from `time` on; returns how many bytes they are. Lines that say
/// nothing, or have no end, are passed over.
pub fn read(bytes: &[u8], time: u64, map: &mut CodeMap) -> usize {
    let whole = bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
    for line in bytes.get(..whole).unwrap_or_default().split(|&byte| byte == b'\n') {
        if let Some((start, size, name)) = entry(line) {
            map.insert(start, size, time, Function { name, lines: Arc::new([]) });
        }
    }
    if whole == 0 && bytes.len() >= MAX_LINE_BYTES { bytes.len() } else { whole }
}

fn entry(line: &[u8]) -> Option<(u64, u64, Arc<str>)> {
    let mut fields = line.splitn(3, |&byte| byte == b' ');
    let (start, size) = (number(fields.next()?)?, number(fields.next()?)?);
    let name = fields.next()?;
    let name = String::from_utf8_lossy(name.get(..MAX_NAME_BYTES).unwrap_or(name));
    let name = name.trim();
    (!name.is_empty()).then(|| (start, size, name.into()))
}

fn number(digits: &[u8]) -> Option<u64> {
    let digits = digits.strip_prefix(b"0x").unwrap_or(digits);
    // A sign is none of the format's.
    let digits = std::str::from_utf8(digits).ok().filter(|text| !text.starts_with('+'))?;
    u64::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(map: &CodeMap, addresses: &[u64]) -> Vec<Option<String>> {
        let name = |&address: &u64| Some(map.find(address, 0)?.function.name.to_string());
        addresses.iter().map(name).collect()
    }

    #[test]
    fn lines_of_every_runtime_are_read_and_others_passed_over() {
        let mut map = CodeMap::new(1 << 20);
        let text = b"7f00 20 JS:*hot /a.js:1:13\n0x8000 0x10 $lists:map/2\nnonsense\n\n9000 zz f\n9000 10\n9000 10 \n\
            +1 1 sign\n9100 10 TRACE_1:: with\xffblank \r\n7f10 4 newer\na000 10 torn";
        let whole = read(text, 0, &mut map);
        assert_eq!(&text[whole..], b"a000 10 torn");
        let found = names(&map, &[0x7f00, 0x7f10, 0x8001, 0x9000, 0x9100, 0xa000, 1]);
        let found: Vec<_> = found.iter().map(Option::as_deref).collect();
        let hot = Some("JS:*hot /a.js:1:13");
        let cleaned = Some("TRACE_1:: with\u{fffd}blank");
        assert_eq!(found, [hot, Some("newer"), Some("$lists:map/2"), None, cleaned, None, None]);
    }

    #[test]
    fn a_name_without_end_is_cut() {
        let mut map = CodeMap::new(1 << 20);
        let line = format!("1 1 {}\n", "x".repeat(100_000));
        assert_eq!(read(line.as_bytes(), 0, &mut map), line.len());
        assert_eq!(map.find(1, 0).unwrap().function.name.len(), MAX_NAME_BYTES);
    }
}
