//! Memory as a walk reads it: through the kernel, which returns an error where a load would fault.
//! What was read is kept for this walk: the structures of one thread lie close together.
//!
//! A system call takes longer than what it copies. So a walk begins with one that reads, at once,
//! the places that the thread's last two walks needed ([`Guess`]). It reads them again: a guess may
//! be useless, but not wrong.

mod pool;

pub use pool::Pool;
use swipr_unwind::memory::guarded_copy_or_file;
use swipr_unwind::system_call::{IoVec, gather, process_vm_readv, thread_id};

/// Bytes of a block: a page at most, which can be read, or not.
const BLOCK: usize = 1024;
/// Bytes that are kept, and the places from which they were read.
const BYTES: usize = 128 * BLOCK;
const PLACES: usize = 1024;
/// Blocks that one walk may read, each by a system call of its own: its time is bounded by this.
const MAX_READS: usize = 640;
/// So many places that are read together take less time than a block by itself.
const TOGETHER: usize = 4;
/// Places that are read by one system call.
pub(crate) const BATCH: usize = 16;

/// What is shorter than a block is found by the lines of memory in which it lies, of so many bytes.
const LINE: u64 = 64;
const LINES: usize = 8192;
const NUMBERS_OF_BLOCKS: usize = 256;

/// Room for what one walk reads at a time; zeroed memory is valid.
#[derive(Debug)]
#[repr(C)]
pub struct Blocks {
    bytes: [u8; BYTES],
    places: [ReadPlace; PLACES],
    /// From which place a line was kept last, and a whole block of memory, by their addresses. What
    /// another one was written over is read again.
    of_line: [u16; LINES],
    of_block: [u16; NUMBERS_OF_BLOCKS],
}

/// What was read from a place.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
struct ReadPlace {
    address: u64,
    length: u32,
    /// How many bytes the walk had read before.
    start: u32,
    /// Something of it was needed.
    is_needed: bool,
    /// It was needed by the walk before, too.
    is_likely: bool,
}

/// The places that a walk needed, for the next one of the same thread; zeroed memory is valid.
#[derive(Debug)]
#[repr(C)]
pub struct Guess {
    places: [ReadPlace; BATCH],
    count: u32,
}

/// The memory of this process, as one walk reads it.
#[derive(Debug)]
pub struct BlockMemory<'b> {
    blocks: &'b mut Blocks,
    memory_file: i32,
    tid: i32,
    /// How many places were read, and the bytes of them.
    reads: usize,
    end: usize,
    /// What that has cost, and may: one that was read with others is the unit.
    cost: usize,
    most_cost: usize,
    last: usize,
    before: usize,
}

impl<'b> BlockMemory<'b> {
    /// Nothing was read yet. `memory_file` as for
    /// [`guarded_copy_or_file`](swipr_unwind::memory::guarded_copy_or_file).
    pub fn new(blocks: &'b mut Blocks, memory_file: i32) -> BlockMemory<'b> {
        let (tid, most_cost) = (thread_id(), MAX_READS * TOGETHER);
        BlockMemory { blocks, memory_file, tid, reads: 0, end: 0, cost: 0, most_cost, last: 0, before: 0 }
    }

    /// Reads what the thread's last two walks needed.
    pub fn expect(&mut self, guess: &Guess) {
        let places = guess.places.iter().take(guess.count as usize).filter(|place| place.is_likely);
        self.read_many(places.map(|place| (place.address, place.length as usize)));
    }

    /// Keeps what this walk needed for the next one, but for what it has read together.
    pub fn learn(&self, guess: &mut Guess) {
        let read = self.blocks.places.iter().take(self.filled());
        let needed = read.filter(|place| place.is_needed && place.length as usize == BLOCK);
        let (last, count) = (guess.places, guess.count as usize);
        guess.count = 0;
        for (kept, place) in guess.places.iter_mut().zip(needed) {
            let is_likely = last.iter().take(count).any(|last| last.address == place.address);
            *kept = ReadPlace { is_likely, ..*place };
            guess.count += 1;
        }
    }

    /// Allows more blocks to be read: for a runtime whose functions are spread over more of them,
    /// or where nobody waits for the walk.
    pub fn allow(&mut self, most: usize) {
        self.most_cost = self.most_cost.max(most.saturating_mul(TOGETHER));
    }

    /// What was read is read again.
    pub fn forget(&mut self) {
        (self.reads, self.end, self.cost) = (0, 0, 0);
    }

    /// How many blocks may still be read, each by itself.
    pub fn left(&self) -> usize {
        self.most_cost.saturating_sub(self.cost) / TOGETHER
    }

    /// Whether nothing more may be read.
    pub fn is_used_up(&self) -> bool {
        self.left() == 0
    }

    fn filled(&self) -> usize {
        self.reads.min(PLACES)
    }

    /// Where something from `address` on is kept.
    fn place_of(&self, address: u64) -> Option<usize> {
        let of_line = self.blocks.of_line.get((address / LINE) as usize % LINES);
        let of_block = self.blocks.of_block.get((address / BLOCK as u64) as usize % NUMBERS_OF_BLOCKS);
        let kept = of_line.into_iter().chain(of_block).map(|&at| usize::from(at));
        kept.into_iter().find(|&at| self.known(at, address).is_some())
    }

    /// Keeps what was read from a place. Returns its number.
    fn keep(&mut self, place: ReadPlace) -> usize {
        let at = self.reads % PLACES;
        let last = place.address.saturating_add(u64::from(place.length)).saturating_sub(1);
        let is_block = place.length as usize == BLOCK;
        let (bytes, index) = match is_block {
            true => (BLOCK as u64, self.blocks.of_block.as_mut_slice()),
            false => (LINE, self.blocks.of_line.as_mut_slice()),
        };
        let count = index.len();
        for number in place.address / bytes..=last / bytes {
            if let Some(kept) = index.get_mut(number as usize % count) {
                *kept = at as u16;
            }
        }
        if let Some(kept) = self.blocks.places.get_mut(at) {
            *kept = place;
        }
        self.reads += 1;
        at
    }

    /// What was read from `address` on.
    fn known(&self, at: usize, address: u64) -> Option<&[u8]> {
        let place = self.blocks.places.get(at).filter(|_| at < self.filled())?;
        let (start, length) = (place.start as usize, place.length as usize);
        let inside = address.checked_sub(place.address).filter(|&inside| inside < length as u64)?;
        // Else it was written over.
        let bytes = self.blocks.bytes.get(start % BYTES..).filter(|_| self.end <= start + BYTES)?;
        bytes.get(inside as usize..length)
    }

    /// Makes room for so many bytes, where the oldest ones are. Returns how many were read before.
    fn make_room(&mut self, length: usize) -> usize {
        let behind = self.end % BYTES;
        let start = if behind + length > BYTES { self.end + BYTES - behind } else { self.end };
        self.end = start + length;
        start
    }

    /// As much as is known from `address` on; reads it, if nothing is.
    fn bytes(&mut self, address: u64) -> Option<&[u8]> {
        if self.known(self.last, address).is_none() {
            // Of two places that are read in turn, such as a stack and a structure.
            core::mem::swap(&mut self.last, &mut self.before);
        }
        if self.known(self.last, address).is_none() {
            self.last = match self.place_of(address) {
                Some(at) => at,
                None => self.read(address - address % BLOCK as u64)?,
            };
            self.blocks.places.get_mut(self.last)?.is_needed = true;
        }
        self.known(self.last, address)
    }

    fn read(&mut self, address: u64) -> Option<usize> {
        if self.is_used_up() {
            return None;
        }
        self.cost += TOGETHER;
        let start = self.make_room(BLOCK);
        let bytes = self.blocks.bytes.get_mut(start % BYTES..)?.get_mut(..BLOCK)?;
        let read = match self.memory_file {
            -1 => process_vm_readv(self.tid, address, bytes).unwrap_or(0),
            file => guarded_copy_or_file(address, bytes, file),
        };
        let length = if read == BLOCK { BLOCK as u32 } else { 0 };
        let at = self.keep(ReadPlace { address, length, start: start as u32, ..ReadPlace::default() });
        (read == BLOCK).then_some(at)
    }

    /// Reads `length` bytes at each of these addresses at once, as far as they can be read: those
    /// that follow find them known.
    pub fn prefetch(&mut self, addresses: impl Iterator<Item = u64>, length: usize) {
        self.read_many(addresses.map(|address| (address, length)));
    }

    /// The same for other lengths: bytes at addresses, in this order.
    pub fn read_many(&mut self, places: impl Iterator<Item = (u64, usize)>) {
        let (mut list, mut count) = ([IoVec { base: 0, length: 0 }; BATCH], 0);
        for (address, length) in places {
            let length = length.min(BLOCK);
            let is_enough = |known: &[u8]| known.len() >= length;
            let known = self.place_of(address).and_then(|at| self.known(at, address));
            let is_known = known.is_some_and(is_enough);
            let is_listed = list.iter().take(count).any(|place| place.base as u64 == address);
            if let Some(place) = list.get_mut(count).filter(|_| !is_known && !is_listed) {
                *place = IoVec { base: address as usize, length };
                count += 1;
            }
        }
        if let Some(list) = list.get(..count).filter(|_| count > 1) {
            self.read_together(list);
        }
    }

    /// Reads these places as far as they can be read.
    fn read_together(&mut self, list: &[IoVec]) {
        if self.is_used_up() {
            return;
        }
        self.cost += list.len();
        let total = list.iter().map(|place| place.length).sum();
        let mut start = self.make_room(total);
        let room = self.blocks.bytes.get_mut(start % BYTES..).and_then(|bytes| bytes.get_mut(..total));
        let mut left = room.and_then(|room| gather(self.tid, list, room).ok()).unwrap_or(0);
        for place in list {
            let Some(rest) = left.checked_sub(place.length) else { return };
            let (address, length) = (place.base as u64, place.length as u32);
            self.keep(ReadPlace { address, length, start: start as u32, ..ReadPlace::default() });
            (left, start) = (rest, start + place.length);
        }
    }

    /// Copies from `address` on; `None`: not all can be read.
    pub fn copy(&mut self, address: u64, buffer: &mut [u8]) -> Option<()> {
        let mut done = 0;
        while done < buffer.len() {
            let part = self.bytes(address.checked_add(done as u64)?)?;
            let to = buffer.get_mut(done..)?;
            let length = part.len().min(to.len());
            to.get_mut(..length)?.copy_from_slice(part.get(..length)?);
            done += length;
        }
        Some(())
    }

    /// Copies from `address` up to a zero byte, as much as there is room for. Returns the length.
    pub fn text(&mut self, address: u64, buffer: &mut [u8]) -> Option<usize> {
        let mut done = 0;
        while done < buffer.len() {
            let part = self.bytes(address.checked_add(done as u64)?)?;
            let end = part.iter().position(|&byte| byte == 0);
            let to = buffer.get_mut(done..)?;
            let length = end.unwrap_or(part.len()).min(to.len());
            to.get_mut(..length)?.copy_from_slice(part.get(..length)?);
            done += length;
            if end.is_some() {
                break;
            }
        }
        Some(done)
    }

    fn array<const N: usize>(&mut self, address: u64) -> Option<[u8; N]> {
        if let Some(bytes) = self.bytes(address)?.first_chunk() {
            return Some(*bytes);
        }
        let mut bytes = [0; N];
        self.copy(address, &mut bytes)?;
        Some(bytes)
    }

    /// The eight bytes at `address`.
    pub fn word(&mut self, address: u64) -> Option<u64> {
        self.array(address).map(u64::from_ne_bytes)
    }

    /// The eight bytes at `address`, if they were read before.
    pub fn known_word(&self, address: u64) -> Option<u64> {
        let known = self.known(self.place_of(address)?, address);
        known?.first_chunk().map(|word| u64::from_ne_bytes(*word))
    }

    /// The four bytes at `address`.
    pub fn half(&mut self, address: u64) -> Option<u32> {
        self.array(address).map(u32::from_ne_bytes)
    }

    /// The byte at `address`.
    pub fn byte(&mut self, address: u64) -> Option<u8> {
        self.array::<1>(address).map(|[byte]| byte)
    }
}

#[cfg(test)]
mod tests;
