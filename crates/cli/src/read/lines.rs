//! Lines that come in pieces, of a bounded length.

/// Longest line that is believed: a stack with thousands of long names has some megabytes.
pub(super) const LONGEST: usize = 256 << 20;

/// Puts lines together.
#[derive(Debug, Default)]
pub struct Lines(Vec<u8>);

impl Lines {
    /// Takes bytes and calls `each` with every line that is whole, without its end.
    pub fn take<E: From<String>>(
        &mut self,
        mut bytes: &[u8],
        mut each: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        while let Some(end) = bytes.iter().position(|&byte| byte == b'\n') {
            let (line, rest) = bytes.split_at(end);
            bytes = rest.get(1..).unwrap_or_default();
            if self.0.is_empty() {
                each(line)?;
            } else {
                self.0.extend_from_slice(line);
                let line = std::mem::take(&mut self.0);
                each(&line)?;
            }
        }
        if self.0.len().saturating_add(bytes.len()) > LONGEST {
            return Err(E::from(format!("a line is longer than {} MiB", LONGEST >> 20)));
        }
        self.0.extend_from_slice(bytes);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_come_in_any_pieces_are_the_same_lines() {
        let text = b"one\n\ntwo three\nlast";
        for size in 1..=text.len() {
            let (mut lines, mut found) = (Lines::default(), Vec::new());
            for piece in text.chunks(size) {
                let each = |line: &[u8]| {
                    found.push(String::from_utf8_lossy(line).into_owned());
                    Ok::<(), String>(())
                };
                lines.take(piece, each).expect("short lines");
            }
            assert_eq!(found, ["one", "", "two three"]);
            assert_eq!(lines.0, b"last");
        }
    }
}
