//! jitdump files (`tools/perf/Documentation/jitdump-specification.txt` of Linux), read record by
//! record as they grow.
//!
//! A torn end is left for the next time. Anything else that is no record ends the reading for good:
//! where the next record begins is not known. Only little-endian files are read.

mod lines;

use super::code_map::{CodeMap, Function};
use lines::FileNames;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// "JiTD", in the byte order of the file's writer.
const MAGIC: u32 = 0x4a69_5444;
const HEADER_BYTES: usize = 40;
const PREFIX_BYTES: usize = 16;
/// Times of the processor's own counter: they cannot be compared here.
const ARCH_TIMESTAMPS: u64 = 1;
/// A larger record is a damaged one: code caches are smaller.
pub const MAX_RECORD_BYTES: usize = 64 << 20;
const MAX_NAME_BYTES: usize = super::perf_map::MAX_NAME_BYTES;
/// Debug records that wait for their functions.
const MAX_PENDING: usize = 1024;

/// How frames of a function are left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unwinding {
    /// The function's code.
    pub start: u64,
    /// Its bytes.
    pub size: u64,
    /// Call frame information of it, for [`Unwinding::section_address`].
    pub eh_frame: Arc<[u8]>,
}

impl Unwinding {
    /// Where the information would be loaded: behind the code, on the next boundary of 8 bytes, as
    /// perf does.
    pub fn section_address(&self) -> u64 {
        self.start.wrapping_add(self.size.next_multiple_of(8))
    }
}

/// Reads one file. Belongs to one [`CodeMap`].
#[derive(Debug, Default)]
pub struct Reader {
    state: State,
    has_own_times: bool,
    /// Records of lines, which come before their functions.
    lines: FxHashMap<u64, Box<[u8]>>,
    unwinding: Option<Arc<[u8]>>,
    files: FileNames,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Header,
    Records,
    /// The compiler has closed it, or it is damaged.
    Ended,
}

impl Reader {
    /// Whether more can come.
    pub fn has_ended(&self) -> bool {
        self.state == State::Ended
    }

    /// Adds what whole records say and returns how many bytes they are. `unwinding` hears how
    /// frames are left.
    pub fn read(&mut self, bytes: &[u8], map: &mut CodeMap, unwinding: &mut dyn FnMut(Unwinding)) -> usize {
        let mut at = 0;
        while let Some(rest) = bytes.get(at..) {
            match self.next(rest, map, unwinding) {
                Some(length) => at += length,
                None => break,
            }
        }
        at
    }

    /// The length of what was read; `None`: there is nothing whole.
    fn next(
        &mut self,
        bytes: &[u8],
        map: &mut CodeMap,
        unwinding: &mut dyn FnMut(Unwinding),
    ) -> Option<usize> {
        let length = match self.state {
            State::Ended => return None,
            State::Header => {
                let mut fields = Fields(bytes.get(..HEADER_BYTES)?);
                let (magic, _version, length) = (fields.word()?, fields.word()?, fields.word()? as usize);
                let flags = Fields(bytes.get(32..)?).long()?;
                self.has_own_times = flags & ARCH_TIMESTAMPS == 0;
                let is_sound = magic == MAGIC && (HEADER_BYTES..MAX_RECORD_BYTES).contains(&length);
                if is_sound && bytes.len() < length {
                    return None; // it is longer than what is known of it
                }
                self.state = if is_sound { State::Records } else { State::Ended };
                length
            }
            State::Records => {
                let length = Fields(bytes.get(4..)?).word()? as usize;
                if !(PREFIX_BYTES..=MAX_RECORD_BYTES).contains(&length) {
                    self.state = State::Ended;
                    return None;
                }
                // A record that lacks what it must have says nothing; the next one may.
                let _ = self.record(bytes.get(..length)?, map, unwinding);
                length
            }
        };
        bytes.get(..length).map(<[u8]>::len)
    }

    fn record(
        &mut self,
        bytes: &[u8],
        map: &mut CodeMap,
        unwinding: &mut dyn FnMut(Unwinding),
    ) -> Option<()> {
        let mut fields = Fields(bytes);
        let (kind, _, time) = (fields.word()?, fields.word()?, fields.long()?);
        let time = if self.has_own_times { time } else { 0 };
        match kind {
            0 => {
                let (_pid_tid, _vma) = (fields.long()?, fields.long()?);
                let (start, size, _index) = (fields.long()?, fields.long()?, fields.long()?);
                let name = text(fields.name()?);
                let pending = self.lines.remove(&start).unwrap_or_default();
                let lines = lines::read(&pending, start..start.saturating_add(size), &name, &mut self.files);
                if let Some(eh_frame) = self.unwinding.take() {
                    unwinding(Unwinding { start, size, eh_frame });
                }
                map.insert(start, size, time, Function { name: name.into(), lines });
            }
            1 => {
                let (_pid_tid, _vma) = (fields.long()?, fields.long()?);
                let (old, new, size) = (fields.long()?, fields.long()?, fields.long()?);
                map.move_to(old, new, size, time);
            }
            2 => {
                let start = fields.long()?;
                if self.lines.len() >= MAX_PENDING {
                    self.lines.clear();
                }
                self.lines.insert(start, fields.0.into());
            }
            3 => self.state = State::Ended,
            4 => {
                let (all, header, _mapped) = (fields.long()?, fields.long()?, fields.long()?);
                let length = usize::try_from(all.checked_sub(header)?).ok()?;
                self.unwinding = fields.0.get(..length).filter(|bytes| !bytes.is_empty()).map(Arc::from);
            }
            _ => {}
        }
        Some(())
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes.get(..MAX_NAME_BYTES).unwrap_or(bytes)).trim().to_owned()
}

/// Little-endian numbers and names with a zero behind them.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn word(&mut self) -> Option<u32> {
        let (value, rest) = self.0.split_first_chunk::<4>()?;
        self.0 = rest;
        Some(u32::from_le_bytes(*value))
    }

    fn long(&mut self) -> Option<u64> {
        let (value, rest) = self.0.split_first_chunk::<8>()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*value))
    }

    fn name(&mut self) -> Option<&'a [u8]> {
        let length = self.0.iter().position(|&byte| byte == 0)?;
        let name = self.0.get(..length)?;
        self.0 = self.0.get(length + 1..)?;
        Some(name)
    }
}
