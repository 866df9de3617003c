//! Bytes as an endless row of choices: behind the last of them all are zero. Small numbers and
//! numbers at limits are likely, since that is where code goes wrong.

/// Words that are at a limit of something.
const LIMITS: [u64; 8] = [0, 1, u64::MAX, i64::MAX as u64, i64::MIN as u64, u32::MAX as u64, 1 << 47, 0x7f];

/// See the module's text.
#[derive(Debug)]
pub struct Choices<'a> {
    bytes: &'a [u8],
}

impl<'a> Choices<'a> {
    /// All that these bytes choose.
    pub fn new(bytes: &'a [u8]) -> Choices<'a> {
        Choices { bytes }
    }

    /// Whether nothing more was chosen.
    pub fn is_over(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The bytes that were not used.
    pub fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.bytes)
    }

    /// Some of the next bytes, as many as they say.
    pub fn some_bytes(&mut self) -> &'a [u8] {
        let length = usize::from(self.byte()).min(self.bytes.len());
        self.take(length)
    }

    /// The next `length` bytes, as far as there are so many.
    pub fn take(&mut self, length: usize) -> &'a [u8] {
        let (taken, rest) = self.bytes.split_at(length.min(self.bytes.len()));
        self.bytes = rest;
        taken
    }

    /// A byte.
    pub fn byte(&mut self) -> u8 {
        self.take(1).first().copied().unwrap_or(0)
    }

    /// Yes or no.
    pub fn flag(&mut self) -> bool {
        self.byte() & 1 == 1
    }

    /// A number below `limit`, which is at most 65536.
    pub fn below(&mut self, limit: u64) -> u64 {
        let number = match limit {
            0..=0x100 => u64::from(self.byte()),
            _ => u64::from(self.byte()) << 8 | u64::from(self.byte()),
        };
        number % limit.max(1)
    }

    /// One of several.
    pub fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        let at = self.below(all.len() as u64);
        all[at as usize]
    }

    /// Eight bytes.
    pub fn raw_word(&mut self) -> u64 {
        self.take(8).iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte))
    }

    /// A word: small, at a limit, or any.
    pub fn word(&mut self) -> u64 {
        match self.below(4) {
            0 | 1 => u64::from(self.byte()),
            2 => self.one_of(&LIMITS),
            _ => self.raw_word(),
        }
    }

    /// An offset, likely a small multiple of eight.
    pub fn offset(&mut self) -> i64 {
        match self.below(4) {
            0..=2 => i64::from(self.byte() as i8) * 8,
            _ => self.word() as i64,
        }
    }
}
