//! What the C library's streams hold in their buffers and have not yet written to their files.
//!
//! Nothing is locked and nothing changed: streams belong to the program. They are copied through
//! the kernel, with the layout that `<bits/types/struct_FILE.h>` publishes. Streams whose fields
//! contradict each other are left out.

use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use swipr_unwind::memory::{guarded_copy, guarded_words};

/// Where the list of all streams begins; 0: not looked for yet, or there is none.
static LIST: AtomicUsize = AtomicUsize::new(0);
/// Streams of one process.
const MAX_STREAMS: usize = 4096;
/// A larger buffer is a damaged one.
const MAX_BUFFER: u64 = 16 << 20;

/// The fields of a stream that are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stream {
    write_base: u64,
    write_ptr: u64,
    buffer: u64,
    buffer_end: u64,
    next: u64,
    file_number: u32,
}

/// Looks for the list in the loaded objects. Enters the dynamic linker.
pub fn find_streams() {
    // SAFETY: the name ends in a NUL.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"_IO_list_all".as_ptr()) };
    // Relaxed: the address of something that is always there.
    LIST.store(found as usize, Relaxed);
}

/// What a stream of the program is going to write behind the end of this file; empty where there is
/// none.
pub fn unwritten(file: &File) -> Vec<u8> {
    // Relaxed: see `find_streams`.
    let list = LIST.load(Relaxed) as u64;
    let Some(about) = file.metadata().ok().filter(|_| list != 0) else { return vec![] };
    let is_it = |number: u32| {
        // The program's descriptor table, which is not this thread's.
        let same = std::fs::metadata(format!("/proc/self/fd/{number}")).ok();
        same.is_some_and(|same| (same.dev(), same.ino()) == (about.dev(), about.ino()))
    };
    let Some([mut at]) = guarded_words(list) else { return vec![] };
    for _ in 0..MAX_STREAMS {
        let Some(stream) = Stream::read(at) else { break };
        if let Some(bytes) = stream.buffered().filter(|_| is_it(stream.file_number)) {
            // It was not written meanwhile; more may have been put behind.
            let again = Stream::read(at);
            let is_same = again.is_some_and(|again| {
                again.write_base == stream.write_base && again.write_ptr >= stream.write_ptr
            });
            return if is_same { bytes } else { vec![] };
        }
        at = stream.next;
    }
    vec![]
}

impl Stream {
    fn read(at: u64) -> Option<Stream> {
        // Words of 8 bytes: `_flags`, three for reading, `_IO_write_base`, `_IO_write_ptr`,
        // `_IO_write_end`, `_IO_buf_base`, `_IO_buf_end`, three for another purpose, `_markers`,
        // `_chain`, `_fileno` in the lower half of its word.
        let words = guarded_words::<15>(at).filter(|_| at != 0)?;
        let [_, _, _, _, write_base, write_ptr, _, buffer, buffer_end, _, _, _, _, next, file_number] = words;
        Some(Stream { write_base, write_ptr, buffer, buffer_end, next, file_number: file_number as u32 })
    }

    fn buffered(&self) -> Option<Vec<u8>> {
        let (from, to) = (self.write_base, self.write_ptr);
        let is_sound = self.buffer <= from && from < to && to <= self.buffer_end && to - from <= MAX_BUFFER;
        let mut bytes = vec![0; if is_sound { to - from } else { 0 } as usize];
        (is_sound && guarded_copy(from, &mut bytes) == bytes.len()).then_some(bytes)
    }
}
