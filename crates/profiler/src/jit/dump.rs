//! A jitdump file, which its compiler has mapped so that profilers find it.

use crate::mappings::JitDump;
use crate::mappings::JitTables;
use std::path::Path;
use swipr_os::{process, stdio};
use swipr_symbols::jit::tailed_file::Consumer;
use swipr_symbols::jit::{CodeMap, TailedFile, jitdump};

/// More of a file is not read; most of it is a copy of the code.
const MAX_BYTES: u64 = 4 << 30;

/// A jitdump file.
#[derive(Debug)]
pub struct Dump {
    marker: JitDump,
    file: TailedFile,
    reader: jitdump::Reader,
    code: CodeMap,
}

impl Dump {
    /// Not read yet.
    pub fn new(marker: &JitDump, max_bytes: usize) -> Dump {
        let file = TailedFile::new(Path::new(&*marker.path), process::user(), MAX_BYTES);
        Dump {
            marker: marker.clone(),
            file: file.with_inode(marker.inode),
            reader: jitdump::Reader::default(),
            code: CodeMap::new(max_bytes),
        }
    }

    /// Whether it is the file of that mapping.
    pub fn is_of(&self, marker: &JitDump) -> bool {
        self.marker == *marker
    }

    /// Reads what was added to the file. Returns whether anything was new.
    pub fn refresh(&mut self, frames: &JitTables) -> bool {
        if self.reader.has_ended() {
            return false;
        }
        let mut records = Records { reader: &mut self.reader, code: &mut self.code, frames };
        self.file.refresh(&mut records, &stdio::unwritten)
    }

    /// The functions in the file.
    pub fn code(&self) -> &CodeMap {
        &self.code
    }
}

struct Records<'a> {
    reader: &'a mut jitdump::Reader,
    code: &'a mut CodeMap,
    frames: &'a JitTables,
}

impl Consumer for Records<'_> {
    fn begin(&mut self) {
        *self.reader = jitdump::Reader::default();
        self.code.clear();
    }

    fn read(&mut self, bytes: &[u8]) -> usize {
        self.reader.read(bytes, self.code, &mut |unwinding| {
            let code = unwinding.start..unwinding.start.saturating_add(unwinding.size);
            self.frames.add(code, (unwinding.section_address(), &unwinding.eh_frame), None);
        })
    }

    fn max_record(&self) -> usize {
        jitdump::MAX_RECORD_BYTES
    }
}
