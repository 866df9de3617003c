//! A file that another party appends to: what is new of it, piece by piece.
//!
//! Any user can put a file into a shared directory. So the file must be a regular one, no link, and
//! belong to the program's user or to root. It is opened for each refresh and never mapped.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Bytes that are read at once, where a record is not longer.
const CHUNK_BYTES: usize = 256 << 10;
/// Bytes that are read in one refresh; the others in later ones.
const MAX_AT_ONCE: u64 = 32 << 20;
/// Bytes before the place that was reached: they show whether the file was rewritten.
const TAIL_BYTES: usize = 64;

/// Takes what is new in the file.
pub trait Consumer {
    /// The file was rewritten, or is another one: what was read of it is no longer valid.
    fn begin(&mut self);
    /// The next bytes; how many of them were whole records. The rest comes again, with more behind
    /// it.
    fn read(&mut self, bytes: &[u8]) -> usize;
    /// No record is longer.
    fn max_record(&self) -> usize;
}

/// Reads a file as it grows. See the module's text.
#[derive(Debug)]
pub struct TailedFile {
    path: PathBuf,
    owner: u32,
    /// Of the file that was read: another one at the same path is a new one.
    inode: Option<u64>,
    /// What must be there; `None`: whatever is at the path.
    wanted_inode: Option<u64>,
    at: u64,
    tail: Vec<u8>,
    max_bytes: u64,
}

impl TailedFile {
    /// The file at `path` of `owner` or root, of which no more than `max_bytes` are read.
    pub fn new(path: &Path, owner: u32, max_bytes: u64) -> TailedFile {
        TailedFile {
            path: path.to_owned(),
            owner,
            inode: None,
            wanted_inode: None,
            at: 0,
            tail: vec![],
            max_bytes,
        }
    }

    /// The same, and no other file than the one with that number.
    pub fn with_inode(self, inode: u64) -> TailedFile {
        TailedFile { wanted_inode: Some(inode), ..self }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Hands on what is new; returns whether there was anything, or the file was rewritten. A file
    /// that is not there, or not to be trusted, has nothing new. `unwritten` returns, for an open
    /// file, what is to be written behind its end.
    pub fn refresh(&mut self, consumer: &mut dyn Consumer, unwritten: &dyn Fn(&File) -> Vec<u8>) -> bool {
        let Some((file, inode)) = self.open() else { return false };
        let Some(whole) = FileAndBuffer::of(file, unwritten) else { return false };
        let mut is_new = false;
        if self.inode != Some(inode) || whole.end() < self.at || !self.is_continued(&whole) {
            is_new = self.inode.is_some();
            if is_new {
                consumer.begin();
            }
            (self.inode, self.at) = (Some(inode), 0);
            self.tail.clear();
        }
        is_new | self.read_on(&whole, consumer)
    }

    fn open(&self) -> Option<(File, u64)> {
        let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY;
        let file = OpenOptions::new().read(true).custom_flags(flags).open(&self.path).ok()?;
        let about = file.metadata().ok()?;
        let is_trusted = about.is_file() && (about.uid() == self.owner || about.uid() == 0);
        let is_it = self.wanted_inode.is_none_or(|inode| inode == about.ino());
        (is_trusted && is_it).then(|| (file, about.ino()))
    }

    fn is_continued(&self, whole: &FileAndBuffer) -> bool {
        let mut tail = vec![0; self.tail.len()];
        let at = self.at.saturating_sub(tail.len() as u64);
        whole.read_exact_at(&mut tail, at).is_some() && tail == self.tail
    }

    fn read_on(&mut self, whole: &FileAndBuffer, consumer: &mut dyn Consumer) -> bool {
        let (started, mut room) = (self.at, CHUNK_BYTES);
        let end = whole.end().min(self.max_bytes);
        while self.at < end && self.at - started < MAX_AT_ONCE {
            let length = usize::try_from(end - self.at).unwrap_or(room).min(room);
            let mut bytes = vec![0; length];
            if whole.read_exact_at(&mut bytes, self.at).is_none() {
                break;
            }
            let used = consumer.read(&bytes).min(length);
            if used == 0 && (length < room || room >= consumer.max_record()) {
                break;
            }
            if used == 0 {
                room = room.saturating_mul(4).min(consumer.max_record());
                continue;
            }
            self.at += used as u64;
            self.tail.extend_from_slice(bytes.get(used.saturating_sub(TAIL_BYTES)..used).unwrap_or_default());
            self.tail.drain(..self.tail.len().saturating_sub(TAIL_BYTES));
        }
        self.at > started
    }
}

/// A file, and what is to come behind its end.
struct FileAndBuffer {
    file: File,
    size: u64,
    unwritten: Vec<u8>,
}

impl FileAndBuffer {
    fn of(file: File, unwritten: &dyn Fn(&File) -> Vec<u8>) -> Option<FileAndBuffer> {
        // The buffer may be written meanwhile: then it is read again, or left for the next time.
        for _ in 0..3 {
            let size = file.metadata().ok()?.len();
            let unwritten = unwritten(&file);
            if file.metadata().ok()?.len() == size {
                return Some(FileAndBuffer { file, size, unwritten }.without_what_is_written());
            }
        }
        let size = file.metadata().ok()?.len();
        Some(FileAndBuffer { file, size, unwritten: vec![] })
    }

    /// Between write(2) and the moment when its caller forgets them, the same bytes are in both
    /// places.
    fn without_what_is_written(mut self) -> FileAndBuffer {
        let mut last = vec![0; self.unwritten.len()];
        let at = self.size.checked_sub(last.len() as u64);
        if at.is_some_and(|at| self.file.read_exact_at(&mut last, at).is_ok()) && last == self.unwritten {
            self.unwritten.clear();
        }
        self
    }

    fn end(&self) -> u64 {
        self.size.saturating_add(self.unwritten.len() as u64)
    }

    fn read_exact_at(&self, bytes: &mut [u8], at: u64) -> Option<()> {
        let written = usize::try_from(self.size.saturating_sub(at)).unwrap_or(usize::MAX).min(bytes.len());
        let (first, rest) = bytes.split_at_mut(written);
        self.file.read_exact_at(first, at).ok()?;
        let skipped = usize::try_from(at.saturating_sub(self.size)).ok()?;
        rest.copy_from_slice(self.unwritten.get(skipped..)?.get(..rest.len())?);
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::sync::atomic::{AtomicU32, Ordering};

    /// Lines, and a `!` where the file was rewritten.
    #[derive(Default)]
    struct Lines(Vec<u8>);

    impl Consumer for Lines {
        fn begin(&mut self) {
            self.0.push(b'!');
        }
        fn read(&mut self, bytes: &[u8]) -> usize {
            let whole = bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
            self.0.extend(&bytes[..whole]);
            whole
        }
        fn max_record(&self) -> usize {
            1 << 20
        }
    }

    struct Place(PathBuf);

    impl Place {
        fn new() -> Place {
            static NUMBER: AtomicU32 = AtomicU32::new(0);
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            Place(std::env::temp_dir().join(format!("swipr-tailed-{}-{number}", std::process::id())))
        }
        fn append(&self, text: &[u8]) {
            let mut file = OpenOptions::new().append(true).create(true).open(&self.0).unwrap();
            file.write_all(text).unwrap();
        }
        fn tailed(&self) -> TailedFile {
            TailedFile::new(&self.0, std::fs::metadata("/proc/self").unwrap().uid(), 1 << 30)
        }
    }

    impl Drop for Place {
        fn drop(&mut self) {
            let _ = std::fs::remove_file(&self.0);
        }
    }

    fn nothing(_: &File) -> Vec<u8> {
        vec![]
    }

    #[test]
    fn what_is_still_in_a_buffer_is_read_and_not_a_second_time_once_it_is_written() {
        let (place, mut lines) = (Place::new(), Lines::default());
        let mut file = place.tailed();
        place.append(b"one\ntw");
        assert!(file.refresh(&mut lines, &|_| b"o\nthree\nfo".to_vec()));
        assert!(!file.refresh(&mut lines, &|_| b"o\nthree\nfou".to_vec()));
        place.append(b"o\nthree\nfou");
        assert!(!file.refresh(&mut lines, &|_| b"o\nthree\nfou".to_vec()));
        assert!(file.refresh(&mut lines, &|_| b"r\n".to_vec()));
        place.append(b"r\n");
        assert!(!file.refresh(&mut lines, &nothing));
        assert_eq!(lines.0, b"one\ntwo\nthree\nfour\n");
    }

    #[test]
    fn what_was_appended_is_read_once_and_a_torn_end_when_it_is_whole() {
        let (place, mut lines) = (Place::new(), Lines::default());
        let mut file = place.tailed();
        assert!(!file.refresh(&mut lines, &nothing));
        for part in ["one\ntw", "o\n", "", "three\n"] {
            place.append(part.as_bytes());
            assert_eq!(file.refresh(&mut lines, &nothing), !part.is_empty());
        }
        assert_eq!(lines.0, b"one\ntwo\nthree\n");
    }

    #[test]
    fn a_file_that_was_rewritten_is_read_again_however_long_it_is() {
        let (place, mut lines) = (Place::new(), Lines::default());
        let mut file = place.tailed();
        place.append(b"one\n");
        file.refresh(&mut lines, &nothing);
        std::fs::write(&place.0, b"another and longer\n").unwrap();
        file.refresh(&mut lines, &nothing);
        std::fs::write(&place.0, b"x\n").unwrap();
        file.refresh(&mut lines, &nothing);
        assert_eq!(lines.0, b"one\n!another and longer\n!x\n");
    }

    #[test]
    fn records_that_are_longer_than_a_chunk_are_read_and_endless_ones_are_not() {
        let (place, mut lines) = (Place::new(), Lines::default());
        let mut file = place.tailed();
        place.append(&[vec![b'a'; 2 * CHUNK_BYTES], b"\n".to_vec()].concat());
        assert!(file.refresh(&mut lines, &nothing));
        assert_eq!(lines.0.len(), 2 * CHUNK_BYTES + 1);
        place.append(&vec![b'b'; 3 << 20]);
        assert!(!file.refresh(&mut lines, &nothing));
    }

    #[test]
    fn links_fifos_other_numbers_and_other_peoples_files_are_not_read() {
        let (place, link, mut lines) = (Place::new(), Place::new(), Lines::default());
        place.append(b"one\n");
        std::os::unix::fs::symlink(&place.0, &link.0).unwrap();
        assert!(!link.tailed().refresh(&mut lines, &nothing));
        let fifo = Place::new();
        let name = std::ffi::CString::new(fifo.0.to_str().unwrap()).unwrap();
        // SAFETY: the name ends in a NUL.
        assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
        assert!(!fifo.tailed().refresh(&mut lines, &nothing));
        let inode = std::fs::metadata(&place.0).unwrap().ino();
        assert!(!place.tailed().with_inode(inode + 1).refresh(&mut lines, &nothing));
        let of_others = std::fs::metadata(&place.0).unwrap().uid() != 0;
        let mut file = TailedFile::new(&place.0, 12_345, 1 << 20);
        assert_eq!(file.refresh(&mut lines, &nothing), !of_others);
        lines.0.clear();
        assert!(place.tailed().with_inode(inode).refresh(&mut lines, &nothing));
        assert_eq!(lines.0, b"one\n");
    }
}
