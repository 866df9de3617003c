//! A bounded pipe of bytes between a recording's own thread and the server thread.
//!
//! The writer waits while the pipe is full, with a bound; the reader never waits.
//! Not here: what the bytes mean, and which thread is woken when there are some.

use crate::recording::{Closed, Output};
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};
use swipr_formats::model::Summary;
use swipr_os::disabled;
use swipr_os::locks::{after_waiting, lock};

/// How long a writer waits for a reader that takes nothing.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Wakes the reader's thread: there is something to take.
pub type Wake = Arc<dyn Fn() + Send + Sync>;

/// Makes a pipe that holds at most `capacity` bytes (at least 1). `wake` is called
/// from the writer's thread when bytes come into an empty pipe and when the
/// recording ends; it must not wait.
pub fn pipe(capacity: usize, wake: Wake) -> (PipeWriter, PipeReader) {
    pipe_with_timeout(capacity, wake, TIMEOUT)
}

fn pipe_with_timeout(capacity: usize, wake: Wake, timeout: Duration) -> (PipeWriter, PipeReader) {
    let shared = Arc::new(SharedPipe { state: Mutex::new(PipeState::default()), room: Condvar::new() });
    let (capacity, takes_empty) = (capacity.max(1), false);
    let writer = PipeWriter { shared: Arc::clone(&shared), capacity, takes_empty, wake, timeout };
    (writer, PipeReader { shared })
}

#[derive(Default)]
struct PipeState {
    bytes: VecDeque<u8>,
    /// Bytes that the reader has taken so far: the writer sees progress by it.
    taken: u64,
    closed: bool,
    end: Option<Result<Summary, String>>,
}

struct SharedPipe {
    state: Mutex<PipeState>,
    /// Signalled when the reader took something or went away.
    room: Condvar,
}

impl SharedPipe {
    fn lock(&self) -> Option<MutexGuard<'_, PipeState>> {
        lock(&self.state)
    }
}

/// The recording's end of a pipe. Dropped without [`Output::finish`], it reports a
/// recording that failed.
pub struct PipeWriter {
    shared: Arc<SharedPipe>,
    capacity: usize,
    takes_empty: bool,
    wake: Wake,
    timeout: Duration,
}

impl PipeWriter {
    /// It takes recordings without a single sample, too.
    pub fn that_takes_empty(mut self) -> PipeWriter {
        self.takes_empty = true;
        self
    }

    fn end(&self, end: Result<Summary, String>) {
        let Some(mut state) = self.shared.lock() else { return };
        if state.end.is_none() {
            state.end = Some(end);
            drop(state);
            (self.wake)();
        }
    }
}

impl Output for PipeWriter {
    fn takes_empty(&self) -> bool {
        self.takes_empty
    }

    /// Waits while the pipe is full: until the reader takes something, goes away, or
    /// has taken nothing for 30 seconds, which closes the pipe.
    fn write(&mut self, mut bytes: &[u8]) -> Result<(), Closed> {
        let mut state = self.shared.lock().ok_or(Closed)?;
        let mut progress = (state.taken, Instant::now());
        loop {
            if state.closed {
                return Err(Closed);
            }
            let room = self.capacity.saturating_sub(state.bytes.len());
            let (now, later) = bytes.split_at(room.min(bytes.len()));
            let was_empty = state.bytes.is_empty();
            state.bytes.extend(now);
            bytes = later;
            if was_empty && !now.is_empty() {
                drop(state);
                (self.wake)();
                state = self.shared.lock().ok_or(Closed)?;
            }
            if bytes.is_empty() {
                return Ok(());
            }
            if state.taken != progress.0 {
                progress = (state.taken, Instant::now());
            }
            let waited = progress.1.elapsed();
            if waited >= self.timeout {
                state.closed = true;
                state.bytes.clear();
                return Err(Closed);
            }
            if state.bytes.len() >= self.capacity && !state.closed {
                let bound = self.timeout.saturating_sub(waited);
                state = after_waiting(self.shared.room.wait_timeout(state, bound)).0;
            }
        }
    }

    fn is_closed(&self) -> bool {
        self.shared.lock().is_none_or(|state| state.closed)
    }

    fn finish(self: Box<Self>, end: Result<Summary, String>) {
        self.end(end);
    }
}

impl Drop for PipeWriter {
    fn drop(&mut self) {
        self.end(Err(
            disabled::message().unwrap_or_else(|| "the recording stopped without a result".to_owned())
        ));
    }
}

impl fmt::Debug for PipeWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PipeWriter").finish_non_exhaustive()
    }
}

/// The server's end of a pipe. Dropping it closes the pipe: the writer's next write
/// fails, and one that waits returns at once.
pub struct PipeReader {
    shared: Arc<SharedPipe>,
}

impl PipeReader {
    /// Moves at most `most` bytes to the end of `into`; returns how many.
    /// Never waits for the writer.
    pub fn take(&mut self, into: &mut Vec<u8>, most: usize) -> usize {
        let Some(mut state) = self.shared.lock() else { return 0 };
        let count = most.min(state.bytes.len());
        let (first, second) = state.bytes.as_slices();
        let first = first.get(..count).unwrap_or(first);
        into.extend_from_slice(first);
        into.extend_from_slice(second.get(..count - first.len()).unwrap_or(second));
        state.bytes.drain(..count);
        if count > 0 {
            state.taken = state.taken.wrapping_add(count as u64);
            self.shared.room.notify_one();
        }
        count
    }

    /// How the recording ended, once all its bytes have been taken.
    pub fn end(&mut self) -> Option<Result<Summary, String>> {
        let gone = || disabled::message().filter(|_| disabled::is_past_grace()).map(Err);
        let Some(state) = self.shared.lock() else { return gone() };
        if !state.bytes.is_empty() {
            return None;
        }
        if state.closed && state.end.is_none() {
            return Some(Err("the reader was too slow".to_owned()));
        }
        state.end.clone().or_else(gone)
    }
}

impl Drop for PipeReader {
    fn drop(&mut self) {
        let Some(mut state) = self.shared.lock() else { return };
        state.closed = true;
        state.bytes = VecDeque::new();
        self.shared.room.notify_one();
    }
}

impl fmt::Debug for PipeReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PipeReader").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;

    fn counted() -> (Arc<AtomicUsize>, Wake) {
        let count = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&count);
        let wake: Wake = Arc::new(move || {
            counter.fetch_add(1, Ordering::SeqCst);
        });
        (count, wake)
    }

    #[test]
    fn bytes_come_out_as_they_went_in_and_then_the_end() {
        let (wakes, wake) = counted();
        let (mut writer, mut reader) = pipe(100, wake);
        writer.write(b"hello ").unwrap();
        writer.write(b"world").unwrap();
        assert_eq!(wakes.load(Ordering::SeqCst), 1, "one wake until it is drained");
        Box::new(writer).finish(Ok(Summary::default()));
        assert_eq!(reader.end(), None, "not before its last byte");
        let mut out = Vec::new();
        assert_eq!(reader.take(&mut out, 6), 6);
        assert_eq!(reader.take(&mut out, 100), 5);
        assert_eq!(out, b"hello world");
        assert_eq!(reader.end(), Some(Ok(Summary::default())));
        assert_eq!(wakes.load(Ordering::SeqCst), 2, "one for bytes, one for the end");
    }

    #[test]
    fn a_write_larger_than_the_pipe_goes_through_in_pieces() {
        let (_, wake) = counted();
        let (mut writer, mut reader) = pipe(7, wake);
        let sent: Vec<u8> = (0..1000u32).map(|i| i as u8).collect();
        let expected = sent.clone();
        let thread = thread::spawn(move || {
            writer.write(&sent).unwrap();
            Box::new(writer).finish(Err("over".to_owned()));
        });
        let mut out = Vec::new();
        let end = loop {
            assert!(reader.take(&mut out, 5) <= 5);
            if let Some(end) = reader.end() {
                break end;
            }
            thread::yield_now();
        };
        thread.join().unwrap();
        assert_eq!(out, expected);
        assert_eq!(end, Err("over".to_owned()));
    }

    #[test]
    fn a_writer_that_waits_is_freed_when_the_reader_goes_away() {
        let (_, wake) = counted();
        let (mut writer, reader) = pipe(4, wake);
        let thread = thread::spawn(move || {
            let outcome = writer.write(b"too much for it");
            (outcome, writer.is_closed())
        });
        drop(reader);
        assert_eq!(thread.join().unwrap(), (Err(Closed), true));
    }

    #[test]
    fn a_reader_that_takes_nothing_closes_the_pipe_in_the_end() {
        let (_, wake) = counted();
        let (mut writer, mut reader) = pipe_with_timeout(4, wake, Duration::from_millis(10));
        assert_eq!(writer.write(b"12345"), Err(Closed));
        assert!(writer.is_closed());
        assert!(reader.end().is_some_and(|end| end.is_err()));
    }

    #[test]
    fn a_writer_that_disappears_is_a_recording_that_failed() {
        let (_, wake) = counted();
        let (writer, mut reader) = pipe(4, wake);
        assert_eq!(reader.end(), None);
        drop(writer);
        assert!(reader.end().is_some_and(|end| end.is_err()));
    }
}
