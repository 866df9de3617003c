//! Where a walk leaves a thread's chain of frames: the frames, and the content of functions that
//! are not known yet.

use crate::blocks::Guess;
use core::sync::atomic::AtomicU64;

/// Frames that are kept of one chain, from the leaf on.
pub const MAX_FRAMES: usize = 1024;
/// Bytes for the content of new functions.
const ARENA: usize = 64 * 1024;
/// Functions met in one walk that are not looked up again in it.
const RECENT: usize = 64;

/// Why a walk ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u32)]
pub enum End {
    /// The interpreter was not asked.
    #[default]
    NotAsked = 0,
    /// At the thread's first function.
    Root = 1,
    /// The interpreter has no state of this thread, or it is not known yet where that is.
    NoState = 2,
    /// Something could not be read.
    Unreadable = 3,
    /// Something was not what it must be.
    Inconsistent = 4,
    /// The chain is longer than what may be kept or read: the rest was cut.
    Full = 5,
    /// Too many handlers were reading at the same time.
    NoPages = 6,
    /// The collector has taken an object's memory away, to move it.
    Moving = 7,
}

impl End {
    /// All of them.
    pub const ALL: [End; 8] = [
        End::NotAsked,
        End::Root,
        End::NoState,
        End::Unreadable,
        End::Inconsistent,
        End::Full,
        End::NoPages,
        End::Moving,
    ];

    /// For the status.
    pub fn text(self) -> &'static str {
        match self {
            End::NotAsked => "not asked",
            End::Root => "complete",
            End::NoState => "no state of this thread",
            End::Unreadable => "unreadable",
            End::Inconsistent => "inconsistent",
            End::Full => "cut: too deep",
            End::NoPages => "too many at a time",
            End::Moving => "objects are being moved",
        }
    }
}

/// A frame of an interpreter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Frame {
    /// The function; 0: none, this is only the end of a segment.
    pub key: u64,
    /// Bytes from the start of its code to the instruction; -1: nothing of it has run. Of Perl and
    /// PHP: the line. Of V8: the number of its native frame among the kept ones.
    pub offset: i32,
    /// Where in the arena the content is, plus 1; 0: the function was known.
    pub content: u16,
    /// The interpreter's native function was entered for this frame.
    pub is_entry: bool,
    /// What else the walk saw of the frame.
    pub(crate) mark: u8,
}

/// Room for one chain; zeroed memory is valid. The writer is a handler that has claimed the slot of
/// this room, or the sampler for a room of its own.
#[derive(Debug)]
#[repr(C)]
pub struct Room {
    /// Sampler to handler: where the interpreter keeps the thread's state; 0: not known.
    pub state: AtomicU64,
    /// Handler to sampler: the thread's pointer to its control block.
    pub thread_pointer: AtomicU64,
    /// Of the handler: where its last walk found something.
    pub guess: Guess,
    /// The result, valid once the slot is answered.
    pub chain: Chain,
}

/// What one walk has found.
#[derive(Debug)]
#[repr(C)]
pub struct Chain {
    end: u32,
    count: u32,
    used: u32,
    walk: u32,
    recent: [(u64, u32, Frame); RECENT],
    frames: [Frame; MAX_FRAMES],
    arena: [u8; ARENA],
}

impl Chain {
    /// Begins a walk.
    pub fn begin(&mut self) {
        (self.count, self.used, self.end) = (0, 0, End::NotAsked as u32);
        self.walk = self.walk.wrapping_add(1);
    }

    /// Ends it. Of a chain that is wrong somewhere, nothing is kept.
    pub fn finish(&mut self, end: End) {
        self.end = end as u32;
        if !matches!(end, End::Root | End::Full) {
            self.count = 0;
        }
    }

    /// Why it ended.
    pub fn end(&self) -> End {
        End::ALL.get(self.end as usize).copied().unwrap_or_default()
    }

    /// The frames, leaf first.
    pub fn frames(&self) -> &[Frame] {
        self.frames.get(..self.count as usize).unwrap_or_default()
    }

    /// Adds the next outer frame; `false`: there is no room.
    pub(crate) fn push(&mut self, frame: Frame) -> bool {
        match self.frames.get_mut(self.count as usize) {
            Some(place) => {
                *place = frame;
                self.count += 1;
                true
            }
            None => false,
        }
    }

    /// Replaces the frame with this number.
    pub(crate) fn set(&mut self, at: usize, frame: Frame) {
        if let Some(place) = self.frames.get_mut(at) {
            *place = frame;
        }
    }

    /// Keeps so many frames.
    pub(crate) fn truncate(&mut self, count: usize) {
        self.count = self.count.min(count as u32);
    }

    /// The frame with this number.
    pub(crate) fn get(&self, at: usize) -> Option<Frame> {
        self.frames().get(at).copied()
    }

    /// The frame that was pushed last was entered from native code.
    pub(crate) fn mark_entry(&mut self) {
        let last = (self.count as usize).checked_sub(1).and_then(|last| self.frames.get_mut(last));
        if let Some(last) = last {
            last.is_entry = true;
        }
    }

    /// Key and content of a function that this walk has met before at that address.
    pub(crate) fn met(&self, code: u64) -> Option<Frame> {
        let (address, walk, frame) = self.recent.get(place(code))?;
        (*address == code && *walk == self.walk).then_some(*frame)
    }

    /// What this walk has remembered, with their keys: not all, if they are many.
    pub fn remembered(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let own = self.recent.iter().filter(|(_, walk, _)| *walk == self.walk);
        own.map(|(code, _, frame)| (*code, frame.key))
    }

    /// Keeps them for [`Chain::met`].
    pub(crate) fn remember(&mut self, code: u64, frame: Frame) {
        if let Some(recent) = self.recent.get_mut(place(code)) {
            *recent = (code, self.walk, frame);
        }
    }

    /// The free part of the arena.
    pub(crate) fn free(&mut self) -> &mut [u8] {
        self.arena.get_mut(self.used as usize..).unwrap_or_default()
    }

    /// Keeps `length` bytes of the free part; where they are, for [`Frame::content`].
    pub(crate) fn keep(&mut self, length: usize) -> Option<u16> {
        let at = (self.used / 8) as usize;
        let used = (self.used as usize).checked_add(length)?.checked_next_multiple_of(8)?;
        let content = u16::try_from(at.checked_add(1)?).ok().filter(|_| used <= ARENA)?;
        self.used = used as u32;
        Some(content)
    }

    /// The content of a new function, and what is behind it.
    pub fn content(&self, frame: Frame) -> Option<&[u8]> {
        let at = usize::from(frame.content.checked_sub(1)?) * 8;
        self.arena.get(at..self.used as usize)
    }
}

fn place(code: u64) -> usize {
    (code >> 4 ^ code >> 10) as usize % RECENT
}
