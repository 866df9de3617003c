//! The bytes of a file, packed by gzip or not. What is packed may be a thousand times larger: its
//! lines are read one by one, and what a reader must have whole has a bound.

use super::{LARGEST, lines::LONGEST, not_whole};
use crate::error::Error;
use flate2::read::MultiGzDecoder;
use std::borrow::Cow;
use std::io::{self, BufRead, BufReader, Read};

/// What is read whole unpacks to at most so many bytes, or to so many times those of the file where
/// that is more. Profiles unpack to some ten times their size.
const MAX_WHOLE: u64 = 256 << 20;
const MAX_TIMES: u64 = 100;

/// See the module's text.
pub(super) struct Input(pub(super) Vec<u8>);

impl Input {
    /// None: the file is not packed.
    fn unpacker(&self) -> Option<MultiGzDecoder<&[u8]>> {
        self.0.starts_with(&[0x1f, 0x8b]).then(|| MultiGzDecoder::new(self.0.as_slice()))
    }

    /// All bytes; of what is packed so many, if they are more.
    pub(super) fn start(&self, most: u64) -> Result<Cow<'_, [u8]>, Error> {
        let Some(unpacker) = self.unpacker() else { return Ok((&self.0).into()) };
        let mut bytes = Vec::new();
        unpacker.take(most).read_to_end(&mut bytes).map_err(broken).map_err(not_whole)?;
        Ok(bytes.into())
    }

    /// All bytes; the packed ones go.
    pub(super) fn whole(self) -> Result<Vec<u8>, Error> {
        let packed = self.0.len();
        let most = MAX_WHOLE.max(MAX_TIMES.saturating_mul(packed as u64)).min(LARGEST);
        let bytes = match self.start(most + 1)? {
            Cow::Owned(unpacked) => unpacked,
            Cow::Borrowed(_) => return Ok(self.0),
        };
        if bytes.len() as u64 > most {
            let what = format!("it unpacks to more than {} MiB from {packed} bytes", most >> 20);
            return Err(Error::new(what, "if it is a recording, unpack it with gunzip and read that"));
        }
        Ok(bytes)
    }

    /// Calls `each` with every line and its number, from 1.
    pub(super) fn lines<'a>(
        &'a self,
        mut each: impl FnMut(usize, Cow<'a, str>) -> Result<(), String>,
    ) -> Result<(), String> {
        let Some(unpacker) = self.unpacker() else {
            let mut lines = self.0.split(|&byte| byte == b'\n').map(ended).enumerate();
            return lines.try_for_each(|(index, line)| each(index + 1, String::from_utf8_lossy(line)));
        };
        let (mut from, mut all, mut line) = (BufReader::new(unpacker), 0, Vec::new());
        for number in 1.. {
            line.clear();
            let got = from.by_ref().take(LONGEST as u64).read_until(b'\n', &mut line).map_err(broken)?;
            all += got as u64;
            let bytes = line.strip_suffix(b"\n");
            match bytes {
                _ if got == 0 => break,
                _ if all >= LARGEST => return Err(format!("it is larger than {} GiB", LARGEST >> 30)),
                None if got == LONGEST => return Err(format!("a line is longer than {} MiB", LONGEST >> 20)),
                _ => {}
            }
            let text = String::from_utf8_lossy(ended(bytes.unwrap_or(&line)));
            each(number, text.into_owned().into())?;
        }
        Ok(())
    }
}

/// A line without the other half of its end.
fn ended(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

fn broken(error: io::Error) -> String {
    format!("it cannot be unpacked: {error}")
}
