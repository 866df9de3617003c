//! Short numbers for contents, the same in each walk.

/// Of these numbers; never 0.
pub(crate) fn hash<const N: usize>(words: [u64; N]) -> u64 {
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let mixed = words.into_iter().fold(0u64, |hash, word| {
        let hash = (hash ^ word).wrapping_mul(FACTOR);
        hash ^ hash >> 29
    });
    mixed.max(1)
}

/// Of these bytes.
pub(crate) fn hash_of(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let mut last = [0; 8];
    last.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
    let words = words.iter().chain([&last]).map(|word| u64::from_ne_bytes(*word));
    words.fold(bytes.len() as u64, |mixed, word| hash([mixed, word]))
}
