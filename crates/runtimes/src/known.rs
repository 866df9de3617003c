//! What the sampler knows already, by content: a handler copies only what is not in it.

use core::sync::atomic::{AtomicU64, Ordering::*};

/// One entry: what it is found by (0: free), and a key.
pub type KnownPair = [AtomicU64; 2];

/// Keys of functions, and what else a function is recognised by. The sampler adds, handlers look
/// up. A handler that misses what was just added copies once more than needed.
#[derive(Clone, Copy, Debug)]
pub struct KnownKeys<'a> {
    /// Open addressing. The length is a power of two, and at most half are used.
    pairs: &'a [KnownPair],
}

impl<'a> KnownKeys<'a> {
    /// A set in `pairs`, whose number is a power of two.
    pub fn new(pairs: &'a [KnownPair]) -> KnownKeys<'a> {
        KnownKeys { pairs }
    }

    fn places(&self, fingerprint: u64) -> impl Iterator<Item = &'a KnownPair> + use<'a> {
        let (pairs, mask) = (self.pairs, self.pairs.len().wrapping_sub(1));
        (0..pairs.len()).filter_map(move |step| pairs.get((fingerprint as usize).wrapping_add(step) & mask))
    }

    /// Whether the key was added.
    pub fn has(&self, key: u64) -> bool {
        self.key_of(key).is_some()
    }

    /// The key that was added for this fingerprint.
    pub fn key_of(&self, fingerprint: u64) -> Option<u64> {
        let mut places = self.places(fingerprint).map(|[found, key]| (found.load(Acquire), key));
        let (found, key) = places.find(|&(found, _)| found == fingerprint || found == 0)?;
        (found == fingerprint).then(|| key.load(Relaxed))
    }

    /// The sampler adds a key, which is not 0; `false`: there is no place.
    pub fn add(&self, key: u64) -> bool {
        self.add_fingerprint(key, key)
    }

    /// The same for a fingerprint, by which a walk recognises the function before it has read its
    /// content.
    pub fn add_fingerprint(&self, fingerprint: u64, key: u64) -> bool {
        let is_free =
            |[found, _]: &&KnownPair| matches!(found.load(Relaxed), 0) || found.load(Relaxed) == fingerprint;
        let Some([found, kept]) = self.places(fingerprint).find(is_free) else { return false };
        kept.store(key, Relaxed);
        found.store(fingerprint, Release);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_found_once_they_were_added_also_where_they_collide() {
        let pairs: [KnownPair; 8] = Default::default();
        let known = KnownKeys::new(&pairs);
        let keys = [1, 9, 17, 7, 15];
        for (n, &key) in keys.iter().enumerate() {
            assert!(!known.has(key) && known.add(key) && known.add(key));
            assert!(keys.iter().enumerate().all(|(m, &key)| known.has(key) == (m <= n)));
        }
        assert_eq!(known.key_of(8), None);
        assert!(known.add_fingerprint(8, 17) && known.key_of(8) == Some(17));
        assert!(!KnownKeys::new(&[]).has(1) && !KnownKeys::new(&[]).add(1));
    }
}
