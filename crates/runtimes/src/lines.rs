//! CPython's line tables: each function says the line of the instruction at `offset` bytes from
//! the code's start. A damaged table gives no line or a wrong one, nothing worse.

/// Of `co_lnotab`, until 3.9: pairs of a number of bytes and a difference of lines.
pub fn differences(table: &[u8], first_line: u32, offset: u32) -> Option<u32> {
    let (mut line, mut at) = (i64::from(first_line), 0u32);
    for [bytes, difference] in table.as_chunks().0 {
        at += u32::from(*bytes);
        if at > offset {
            break;
        }
        line += i64::from(*difference as i8);
    }
    u32::try_from(line).ok()
}

/// Of `co_linetable` of 3.10 (PEP 626): pairs of a number of bytes, and the difference of their
/// line to the one before.
pub fn ranges(table: &[u8], first_line: u32, offset: u32) -> Option<u32> {
    const NO_LINE: i8 = -128;
    let (mut line, mut at) = (i64::from(first_line), 0u32);
    for [bytes, difference] in table.as_chunks().0 {
        at += u32::from(*bytes);
        let has_line = *difference as i8 != NO_LINE;
        line += if has_line { i64::from(*difference as i8) } else { 0 };
        if offset < at {
            return if has_line { u32::try_from(line).ok() } else { None };
        }
    }
    None
}

/// Of `co_linetable` from 3.11 on (PEP 657): entries of a code, a number of instructions, and
/// differences of lines and columns.
pub fn locations(table: &[u8], first_line: u32, offset: u32) -> Option<u32> {
    const NO_LINE: u8 = 15;
    let (mut bytes, mut line, mut at) = (table.iter(), i64::from(first_line), 0u32);
    loop {
        let head = *bytes.next()?;
        let (code, instructions) = (head >> 3 & 15, u32::from(head & 7) + 1);
        match code {
            NO_LINE => {}
            14 => {
                line += signed(&mut bytes)?;
                (0..3).try_for_each(|_| unsigned(&mut bytes).map(drop))?;
            }
            13 => line += signed(&mut bytes)?,
            10..=12 => {
                line += i64::from(code - 10);
                bytes.nth(1)?;
            }
            _ => drop(bytes.next()?),
        }
        at += 2 * instructions;
        if offset < at {
            return if code == NO_LINE { None } else { u32::try_from(line).ok() };
        }
    }
}

/// Six bits a byte, the least significant first.
fn unsigned<'a>(bytes: &mut impl Iterator<Item = &'a u8>) -> Option<u32> {
    let mut number = 0u32;
    for shift in (0..32).step_by(6) {
        let byte = *bytes.next()?;
        number |= u32::from(byte & 63) << shift;
        if byte & 64 == 0 {
            return Some(number);
        }
    }
    None
}

/// The sign is in the lowest bit.
fn signed<'a>(bytes: &mut impl Iterator<Item = &'a u8>) -> Option<i64> {
    let number = unsigned(bytes)?;
    let size = i64::from(number >> 1);
    Some(if number & 1 == 1 { -size } else { size })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_entry_gives_the_lines_of_its_instructions() {
        // One entry each: code 13, +0, 1 instruction; short form, 2 instructions; no line; +300.
        let table = [0x80 | 13 << 3, 0, 0x80 | 11 << 3 | 1, 1, 2, 0x80 | 15 << 3, 0x80 | 13 << 3, 0x58, 9];
        let lines = [0, 2, 4, 6, 8, 10].map(|offset| locations(&table, 7, offset));
        assert_eq!(lines, [Some(7), Some(8), Some(8), None, Some(308), None]);
    }

    #[test]
    fn older_tables_give_the_lines_of_their_instructions() {
        let table = [0, 1, 6, 2, 4, 0x80, 2, 0xff];
        let lines = [0, 4, 6, 8, 10, 12, 300].map(|offset| differences(&table, 3, offset));
        assert_eq!(lines, [Some(4), Some(4), Some(6), Some(6), None, None, None]);
        let table = [4, 1, 2, 0x80, 2, 3, 2, 0xff];
        let lines = [0, 2, 4, 6, 8, 10].map(|offset| ranges(&table, 3, offset));
        assert_eq!(lines, [Some(4), Some(4), None, Some(7), Some(6), None]);
    }

    #[test]
    fn any_bytes_are_read_without_a_panic() {
        let mut state = 1u32;
        let mut byte = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        };
        for _ in 0..2000 {
            let table: Vec<u8> = (0..40).map(|_| byte()).collect();
            for offset in [0, 1, 7, 100, u32::MAX] {
                for line in [differences, ranges, locations] {
                    line(&table, u32::MAX, offset);
                }
            }
        }
    }
}
