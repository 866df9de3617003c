//! What the sampler knows already, by content: a handler copies only what is not in it.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A set of keys. The sampler adds, handlers look up: a key is one word, so it is never torn. A
/// handler that misses a key that was just added copies once more than needed.
#[derive(Clone, Copy, Debug)]
pub struct KnownKeys<'a> {
    /// Open addressing; 0: free. The length is a power of two, and at most half are used.
    words: &'a [AtomicU64],
}

impl<'a> KnownKeys<'a> {
    /// A set in `words`, whose number is a power of two.
    pub fn new(words: &'a [AtomicU64]) -> KnownKeys<'a> {
        KnownKeys { words }
    }

    fn places(&self, key: u64) -> impl Iterator<Item = &'a AtomicU64> + use<'a> {
        let (words, mask) = (self.words, self.words.len().wrapping_sub(1));
        (0..words.len()).filter_map(move |step| words.get((key as usize).wrapping_add(step) & mask))
    }

    /// Whether it was added.
    pub fn has(&self, key: u64) -> bool {
        let mut places = self.places(key).map(|word| word.load(Relaxed));
        places.find(|&word| word == key || word == 0) == Some(key)
    }

    /// The sampler adds a key, which is not 0; `false`: there is no place.
    pub fn add(&self, key: u64) -> bool {
        let free = |word: &&AtomicU64| matches!(word.load(Relaxed), 0) || word.load(Relaxed) == key;
        let place = self.places(key).find(free);
        place.inspect(|word| word.store(key, Relaxed)).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_found_once_they_were_added_also_where_they_collide() {
        let words: [AtomicU64; 8] = Default::default();
        let known = KnownKeys::new(&words);
        let keys = [1, 9, 17, 7, 15, 8];
        for (n, &key) in keys.iter().enumerate() {
            assert!(!known.has(key) && known.add(key) && known.add(key));
            assert!(keys.iter().enumerate().all(|(m, &key)| known.has(key) == (m <= n)));
        }
        assert!(!KnownKeys::new(&[]).has(1) && !KnownKeys::new(&[]).add(1));
    }
}
