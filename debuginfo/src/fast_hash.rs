//! A hash for small keys that nobody chooses to collide with care: rules and file
//! offsets, hashed once a row of a table of millions. Not for names.

use std::hash::{BuildHasherDefault, Hasher};

/// A `HashMap` with [`Multiply`].
pub(crate) type FastMap<K, V> = std::collections::HashMap<K, V, BuildHasherDefault<Multiply>>;

/// Multiplies by an odd constant and folds the high half down.
#[derive(Default)]
pub(crate) struct Multiply(u64);

impl Hasher for Multiply {
    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 32)
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }

    fn write_u32(&mut self, value: u32) {
        self.write_u64(u64::from(value));
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = (self.0.rotate_left(5) ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn write_usize(&mut self, value: usize) {
        self.write_u64(value as u64);
    }
}
