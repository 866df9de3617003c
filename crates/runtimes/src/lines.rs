//! CPython's line tables, and Ruby's: each function says the line of the instruction at `offset`
//! from the code's start, in bytes or words. A damaged table gives no line or a wrong one, nothing
//! worse. V8's are read whole.

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

/// Of Ruby: the bytes of an index, the index, and four bytes for each line. The index
/// says how many lines begin up to an instruction. Its first 54 instructions have seven bits each
/// for that, nine of them a word. Each block behind has the number of lines before its 512
/// instructions, seven numbers of nine bits for its words but the first, and a bit for each
/// instruction at which a line begins.
pub fn indexed(table: &[u8], _: u32, offset: u32) -> Option<u32> {
    let (index_bytes, rest) = table.split_first_chunk()?;
    let (index, lines) = rest.split_at_checked(u32::from_ne_bytes(*index_bytes) as usize)?;
    let word = |at: u32| Some(u64::from_ne_bytes(*index.as_chunks().0.get(at as usize)?));
    let count = match offset.checked_sub(54) {
        _ if index.is_empty() => 1,
        None => (word(offset / 9)? >> (offset % 9 * 7) & 0x7f) as u32,
        Some(behind) => {
            let (block, of_block, bit) = (6 + behind / 512 * 10, behind % 512 / 64, behind % 64);
            let before = word(block)? as u32;
            let in_words = match of_block {
                0 => 0,
                _ => (word(block + 1)? >> ((of_block - 1) * 9) & 0x1ff) as u32,
            };
            let in_word = (word(block + 2 + of_block)? << (63 - bit)).count_ones();
            before.saturating_add(in_words + in_word)
        }
    };
    let line = *lines.as_chunks().0.get(count.checked_sub(1)? as usize)?;
    // Some instructions have none.
    Some(u32::from_ne_bytes(line)).filter(|&line| line != 0)
}

/// Of Java: a byte for each bytecode at which a line begins, with its distance to the one before
/// and that of their lines; or a mark, and both as numbers of several bytes. `LOWEST` is what their
/// bytes begin at.
pub fn bytecodes<const LOWEST: u8>(table: &[u8], _: u32, offset: u32) -> Option<u32> {
    const IN_TWO_NUMBERS: u8 = 255;
    let (mut bytes, mut bytecode, mut line, mut found) = (table.iter(), 0i64, 0i64, None);
    loop {
        let (distance, difference) = match bytes.next().copied().unwrap_or(0) {
            0 => break,
            IN_TWO_NUMBERS => {
                let mut number = || Some(with_sign(shared_bytes::<LOWEST>(&mut bytes)?.into()));
                (number()?, number()?)
            }
            byte => ((byte >> 3).into(), (byte & 7).into()),
        };
        (bytecode, line) = (bytecode + distance, line + difference);
        if bytecode <= i64::from(offset) {
            found = u32::try_from(line).ok();
        }
    }
    found
}

/// A number as HotSpot writes it: bytes from 192 on have others behind them.
pub fn shared_bytes<const LOWEST: u8>(bytes: &mut std::slice::Iter<'_, u8>) -> Option<u32> {
    const HIGH: u8 = 192;
    let mut number = 0u32;
    for shift in [0, 6, 12, 18, 24] {
        let byte = *bytes.next()?;
        number = number.wrapping_add(u32::from(byte.checked_sub(LOWEST)?) << shift);
        if byte < HIGH {
            break;
        }
    }
    Some(number)
}

/// How V8 writes the distance between two instructions of a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Distances {
    /// Until 13: as a signed number, whose sign says whether a statement begins.
    #[default]
    Signed,
    /// From 14 on: behind two bits that say such things.
    Shifted,
}

/// All places of V8's table: instructions, as bytes from the start of code that has so many, and
/// positions. `None`: the table is damaged.
pub fn positions(table: &[u8], distances: Distances, size: u32) -> Option<Vec<(u32, i64)>> {
    let (mut bytes, mut at, mut position, mut all) = (table.iter(), 0u32, 0i64, vec![]);
    while bytes.len() > 0 {
        let distance = seven_bits(&mut bytes)?;
        let distance = match (distances, with_sign(distance)) {
            (Distances::Shifted, _) => distance >> 2,
            (Distances::Signed, signed) => (if signed < 0 { !signed } else { signed }) as u64,
        };
        at = at.checked_add(u32::try_from(distance).ok()?).filter(|&at| at <= size)?;
        let difference = with_sign(seven_bits(&mut bytes)?);
        position = position.checked_add(difference).filter(|&position| position >= 0)?;
        all.push((at, position));
    }
    Some(all)
}

/// The sign is in the lowest bit; a negative number is its complement.
fn with_sign(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}

/// Seven bits a byte, the least significant first.
fn seven_bits<'a>(bytes: &mut impl Iterator<Item = &'a u8>) -> Option<u64> {
    let mut number = 0u64;
    for shift in (0..63).step_by(7) {
        let byte = *bytes.next()?;
        number |= u64::from(byte & 127) << shift;
        if byte < 128 {
            return Some(number);
        }
    }
    None
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

    /// An index as Ruby makes it, of code that is `size` long and has lines at these instructions.
    fn index(size: u32, starts: &[u32]) -> Vec<u64> {
        let count = |at: u32| starts.iter().filter(|&&start| start <= at).count() as u64;
        let mut words = vec![0u64; 6];
        (0..54).for_each(|at| words[at as usize / 9] |= count(at) << (at % 9 * 7));
        for block in (54..size).step_by(512) {
            let of_word = |word: u32| count(block + word * 64 - 1) - count(block - 1);
            let bits = |word: u32| (0..64).filter(move |bit| starts.contains(&(block + word * 64 + bit)));
            words.push(count(block - 1));
            words.push((1..8).map(|word| of_word(word) << ((word - 1) * 9)).sum());
            words.extend((0..8).map(|word| bits(word).map(|bit| 1 << bit).sum::<u64>()));
        }
        words
    }

    #[test]
    fn an_index_gives_the_line_that_begins_last_before_an_instruction() {
        let starts: Vec<u32> = (0..1600).filter(|at| at * at % 7 == 2 || at % 64 == 53 || *at == 0).collect();
        let index = index(1700, &starts);
        let mut table = ((8 * index.len()) as u32).to_ne_bytes().to_vec();
        table.extend(index.iter().flat_map(|word| word.to_ne_bytes()));
        table.extend((0..starts.len() as u32).flat_map(|at| (100 + at).to_ne_bytes()));
        for at in 0..1700 {
            let last = starts.iter().filter(|&&start| start <= at).count() as u32;
            assert_eq!(indexed(&table, 0, at), Some(99 + last), "{at}");
        }
        assert_eq!(indexed(&[0, 0, 0, 0, 7, 0, 0, 0], 0, 300), Some(7), "one line needs no index");
    }

    #[test]
    fn both_kinds_of_v8_s_tables_give_the_positions_of_their_instructions() {
        // +3 a statement, +100; +200 no statement, -40.
        let signed = [6, 0xc8, 1, 0x91, 3, 79];
        let shifted = [3 << 2 | 1, 0xc8, 1, 0xa2, 6, 79];
        for (table, distances) in [(signed, Distances::Signed), (shifted, Distances::Shifted)] {
            assert_eq!(positions(&table, distances, 203), Some(vec![(3, 100), (203, 60)]));
            assert_eq!(positions(&table, distances, 202), None, "behind the end");
            assert_eq!(positions(&table[..5], distances, 203), None, "cut");
            assert_eq!(positions(&[0, 1], distances, 203), None, "before the start");
        }
        assert_eq!(positions(&[], Distances::Signed, 0), Some(vec![]));
    }

    #[test]
    fn a_table_of_java_gives_the_line_that_begins_last_before_a_bytecode() {
        // +0 line 5, +3 line 6, +300 line 106, +2 line 103 (both in two numbers), the end.
        let older = [0x05, 0x19, 255, 216, 6, 200, 0, 255, 4, 5, 0, 7, 7];
        for (at, line) in [(0, 5), (2, 5), (3, 6), (302, 6), (303, 106), (304, 106), (305, 103), (9999, 103)]
        {
            assert_eq!(bytecodes::<0>(&older, 0, at), Some(line), "{at}");
        }
        assert_eq!(bytecodes::<0>(&[0x19, 0], 0, 2), None, "before the first line");
        let newer = [0x05, 0x19, 255, 217, 7, 201, 1, 255, 5, 6, 0];
        assert_eq!([0, 303, 305].map(|at| bytecodes::<1>(&newer, 0, at)), [Some(5), Some(106), Some(103)]);
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
            for distances in [Distances::Signed, Distances::Shifted] {
                positions(&table, distances, u32::MAX);
            }
            for offset in [0, 1, 7, 100, u32::MAX] {
                for line in [differences, ranges, locations, indexed, bytecodes::<0>, bytecodes::<1>] {
                    line(&table, u32::MAX, offset);
                }
            }
        }
    }
}
