//! Bodies in chunks (RFC 9112, section 7.1). Extensions and trailers are skipped.

/// Most bytes on the wire for one of the body: a body in chunks of one byte still passes.
const MAX_WIRE_BYTES: usize = 8;

/// Puts a body together from bytes as they come.
#[derive(Debug)]
pub(crate) struct Decoder {
    max_bytes: usize,
    body: Vec<u8>,
    wire_bytes: usize,
    state: ChunkState,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ChunkState {
    /// In a size, of which so many digits were seen.
    #[default]
    SizeStart,
    Size(usize),
    /// In what follows a size, up to the line's end.
    Extension(usize),
    SizeEnd(usize),
    Data(usize),
    DataReturn,
    DataEnd,
    TrailerStart,
    Trailer,
    TrailerEnd,
    LastEnd,
    Done,
}

/// Why a body cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bad {
    TooLong,
    Malformed,
}

impl Decoder {
    /// For a body of at most so many bytes.
    pub(crate) fn new(max_bytes: usize) -> Decoder {
        Decoder { max_bytes, body: Vec::new(), wire_bytes: 0, state: ChunkState::default() }
    }

    /// Takes bytes; returns how many belong to the body, and the body when it is
    /// complete.
    pub(crate) fn feed(&mut self, input: &[u8]) -> Result<(usize, Option<Vec<u8>>), Bad> {
        let mut used = 0;
        for byte in input {
            used += 1;
            self.wire_bytes += 1;
            if self.wire_bytes > self.max_bytes * MAX_WIRE_BYTES {
                return Err(Bad::TooLong);
            }
            self.state = self.step(*byte)?;
            if self.state == ChunkState::Done {
                return Ok((used, Some(std::mem::take(&mut self.body))));
            }
        }
        Ok((used, None))
    }

    fn step(&mut self, byte: u8) -> Result<ChunkState, Bad> {
        Ok(match (self.state, byte) {
            (ChunkState::SizeStart, _) => ChunkState::Size(digit(byte)?),
            (ChunkState::Size(size), b'\r') => ChunkState::SizeEnd(size),
            (ChunkState::Size(size), b'\n') | (ChunkState::SizeEnd(size), b'\n') => after_size(size),
            (ChunkState::Size(size), b';' | b' ' | b'\t') => ChunkState::Extension(size),
            (ChunkState::Size(size), _) => {
                let size = size.saturating_mul(16).saturating_add(digit(byte)?);
                if self.body.len().saturating_add(size) > self.max_bytes {
                    return Err(Bad::TooLong);
                }
                ChunkState::Size(size)
            }
            (ChunkState::Extension(size), b'\n') => after_size(size),
            (ChunkState::Extension(size), _) => ChunkState::Extension(size),
            (ChunkState::Data(left), _) => {
                if self.body.len() >= self.max_bytes {
                    return Err(Bad::TooLong);
                }
                self.body.push(byte);
                match left.saturating_sub(1) {
                    0 => ChunkState::DataReturn,
                    left => ChunkState::Data(left),
                }
            }
            (ChunkState::DataReturn, b'\r') => ChunkState::DataEnd,
            (ChunkState::DataReturn | ChunkState::DataEnd, b'\n') => ChunkState::SizeStart,
            (ChunkState::TrailerStart, b'\r') => ChunkState::LastEnd,
            (ChunkState::TrailerStart | ChunkState::LastEnd, b'\n') => ChunkState::Done,
            (ChunkState::TrailerStart, _) => ChunkState::Trailer,
            (ChunkState::Trailer, b'\r') => ChunkState::TrailerEnd,
            (ChunkState::Trailer | ChunkState::TrailerEnd, b'\n') => ChunkState::TrailerStart,
            (ChunkState::Trailer, _) => ChunkState::Trailer,
            _ => return Err(Bad::Malformed),
        })
    }
}

fn after_size(size: usize) -> ChunkState {
    match size {
        0 => ChunkState::TrailerStart,
        size => ChunkState::Data(size),
    }
}

fn digit(byte: u8) -> Result<usize, Bad> {
    let digit = char::from(byte).to_digit(16).ok_or(Bad::Malformed)?;
    usize::try_from(digit).map_err(|_| Bad::Malformed)
}

#[cfg(test)]
mod tests {
    use super::super::head::MAX_BODY_BYTES;
    use super::*;
    use proptest::prelude::*;
    use proptest::test_runner::RngSeed;

    fn byte_by_byte(input: &[u8]) -> Result<Option<Vec<u8>>, Bad> {
        let mut decoder = Decoder::new(MAX_BODY_BYTES);
        for byte in input {
            if let (_, Some(body)) = decoder.feed(&[*byte])? {
                return Ok(Some(body));
            }
        }
        Ok(None)
    }

    #[test]
    fn chunks_make_a_body_however_they_are_cut() {
        let wire = b"4;name=value\r\nWiki\r\n5\r\npedia\r\nA\n0123456789\n0\r\nX: y\r\n\r\nGET";
        let mut decoder = Decoder::new(MAX_BODY_BYTES);
        let (used, body) = decoder.feed(wire).unwrap();
        assert_eq!(body.as_deref(), Some(&b"Wikipedia0123456789"[..]));
        assert_eq!(&wire[used..], b"GET");
        assert_eq!(byte_by_byte(wire).unwrap(), body);
    }

    #[test]
    fn what_is_no_chunk_or_too_much_is_refused() {
        for bad in ["x\r\n", "\r\n", "-1\r\n", "3\r\nabcd\r\n", "3\r\nabc0\r\n", "3\rabc"] {
            assert_eq!(byte_by_byte(bad.as_bytes()), Err(Bad::Malformed), "{bad:?}");
        }
        for long in ["10001\r\n", "ffffffffffffffffffffffff\r\n"] {
            assert_eq!(byte_by_byte(long.as_bytes()), Err(Bad::TooLong), "{long:?}");
        }
        let endless = b"1\r\nx\r\n".repeat(MAX_BODY_BYTES + 1);
        assert_eq!(byte_by_byte(&endless), Err(Bad::TooLong));
        let trailers = [b"0\r\n".to_vec(), b"a: b\r\n".repeat(100_000)].concat();
        assert_eq!(byte_by_byte(&trailers), Err(Bad::TooLong));
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            rng_seed: RngSeed::Fixed(1),
            failure_persistence: None,
            ..ProptestConfig::default()
        })]

        #[test]
        fn any_body_comes_back_however_it_is_cut(
            body in prop::collection::vec(any::<u8>(), 0..2000),
            chunk in 1..300usize,
            piece in 1..300usize,
            behind in prop::collection::vec(any::<u8>(), 0..10),
        ) {
            let mut wire = Vec::new();
            for chunk in body.chunks(chunk) {
                wire.extend(format!("{:x}\r\n", chunk.len()).bytes().chain(chunk.iter().copied()).chain(*b"\r\n"));
            }
            wire.extend(b"0\r\n\r\n");
            let length = wire.len();
            wire.extend(behind);
            let (mut decoder, mut used, mut decoded) = (Decoder::new(MAX_BODY_BYTES), 0, None);
            for piece in wire.chunks(piece) {
                let (taken, body) = decoder.feed(piece).unwrap();
                (used, decoded) = (used + taken, body);
                if decoded.is_some() {
                    break;
                }
            }
            prop_assert_eq!((used, decoded), (length, Some(body)));
        }
    }
}
