//! The lines of one function in a jitdump file.

use super::super::code_map::LineEntry;
use super::{Fields, text};
use rustc_hash::FxHashMap;
use std::ops::Range;
use std::sync::Arc;
use swipr_unwind_tables::order::sorted_by;

/// Lines of one function.
const MAX_LINES: u64 = 1 << 16;
/// Names of files that are kept once.
const MAX_FILES: usize = 4096;
/// In the place of a file's name: the same as before.
const SAME_NAME: &[u8] = b"\xff";
/// Bytes of an entry in front of its file's name.
const ENTRY_BYTES: usize = 16;
/// V8 writes addresses of lines as if an ELF header lay in front of the code (`kElfHeaderSize` of
/// its `perf-jit.cc`).
const ELF_HEADER_BYTES: u64 = 0x40;

/// Names of files, each once.
#[derive(Debug, Default)]
pub(super) struct FileNames(FxHashMap<Box<str>, Arc<str>>);

impl FileNames {
    fn share(&mut self, name: &str) -> Arc<str> {
        if let Some(known) = self.0.get(name) {
            return known.clone();
        }
        if self.0.len() >= MAX_FILES {
            self.0.clear();
        }
        let new: Arc<str> = name.into();
        self.0.insert(name.into(), new.clone());
        new
    }
}

/// The lines of the function in `code`, from a record behind its first address; none where the
/// record makes no sense.
pub(super) fn read(record: &[u8], code: Range<u64>, name: &str, files: &mut FileNames) -> Arc<[LineEntry]> {
    let mut fields = Fields(record);
    let Some(count) = fields.long().filter(|&count| count <= MAX_LINES) else { return Arc::new([]) };
    let script = script_of_v8(name);
    let from = code.start.wrapping_add(if script.is_some() { ELF_HEADER_BYTES } else { 0 });
    let offset = |address: u64| Some(address.wrapping_sub(from)).filter(|&it| it <= code.end - code.start);
    let lines = named(Fields(fields.0), count, offset, files);
    let lines = lines.or_else(|| of_one_file(fields.0, count, offset, &files.share(script?)));
    // Of several of one address the last holds.
    sorted_by(&lines.unwrap_or_default(), |entry| entry.offset).into()
}

fn named(
    mut fields: Fields,
    count: u64,
    offset: impl Fn(u64) -> Option<u64>,
    files: &mut FileNames,
) -> Option<Vec<LineEntry>> {
    let mut lines = Vec::new();
    let mut file: Option<Arc<str>> = None;
    for _ in 0..count {
        let (address, line, _discriminator) = (fields.long()?, fields.word()?, fields.word()?);
        let name = fields.name()?;
        if name != SAME_NAME {
            let is_path = !name.iter().any(u8::is_ascii_control);
            file = Some(
                files.share(std::str::from_utf8(name).ok().filter(|_| is_path).map(|_| text(name))?.as_str()),
            );
        }
        lines.push(LineEntry { offset: offset(address)?, line, file: file.clone()? });
    }
    Some(lines)
}

/// V8 was seen (node 20) to write other bytes in the place of the file's name in functions of its
/// baseline tier, as many as the name has: then numbers are where they are if all are of the
/// function's own script.
fn of_one_file(
    bytes: &[u8],
    count: u64,
    offset: impl Fn(u64) -> Option<u64>,
    file: &Arc<str>,
) -> Option<Vec<LineEntry>> {
    let mut entries = bytes.chunks_exact(ENTRY_BYTES + file.len() + 1);
    let mut line = || {
        let mut fields = Fields(entries.next()?);
        Some(LineEntry { offset: offset(fields.long()?)?, line: fields.word()?, file: file.clone() })
    };
    (0..count).map(|_| line()).collect()
}

/// The script in a name of V8's, `JS:*function /script.js:1:13`: behind the kind of code the mark
/// of its tier.
fn script_of_v8(name: &str) -> Option<&str> {
    let kinds = ["JS:", "Function:", "LazyCompile:", "Script:", "Eval:", "RegExp:"];
    let rest = kinds
        .iter()
        .find_map(|kind| name.strip_prefix(kind))?
        .strip_prefix(['~', '^', '+', '*', '-', '='])?;
    let mut parts = rest.split_once(' ').map_or(rest, |(_, script)| script).rsplitn(3, ':');
    let is_number = |part: Option<&str>| part.is_some_and(|part| part.parse::<u32>().is_ok());
    (is_number(parts.next()) && is_number(parts.next())).then(|| parts.next())?
}
