//! Inputs made from others, by numbers that look random and are the same each time.

/// xorshift.
pub struct Random(pub u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }
}

/// Bytes at which code often goes wrong.
const LIMITS: [u8; 8] = [0, 1, 0x7f, 0x80, 0xff, b'\n', b'%', b'"'];

/// One of the inputs with up to eight changes, or a few bytes that come from none.
pub fn changed(inputs: &[Vec<u8>], most_bytes: usize, random: &mut Random) -> Vec<u8> {
    let mut bytes = match random.below(16) {
        0 => (0..random.below(300)).map(|_| random.next() as u8).collect(),
        _ => inputs[random.below(inputs.len())].clone(),
    };
    for _ in 0..1 + random.below(8) {
        change(&mut bytes, inputs, random);
    }
    bytes.truncate(most_bytes);
    bytes
}

fn change(bytes: &mut Vec<u8>, inputs: &[Vec<u8>], random: &mut Random) {
    let at = random.below(bytes.len() + 1);
    let part = at..(at + 1 + random.below(16)).min(bytes.len());
    match random.below(6) {
        0 => bytes.truncate(at),
        1 => drop(bytes.drain(part)),
        2 => drop(bytes.splice(at..at, std::iter::repeat_n(random.next() as u8, 1 + random.below(16)))),
        3 => {
            let other = &inputs[random.below(inputs.len())];
            let from = random.below(other.len() + 1);
            let to = (from + random.below(64)).min(other.len());
            bytes.splice(part, other[from..to].iter().copied());
        }
        _ => {
            let with = match random.below(2) {
                0 => LIMITS[random.below(LIMITS.len())],
                _ => random.next() as u8,
            };
            if let Some(byte) = bytes.get_mut(at) {
                *byte = with;
            }
        }
    }
}
