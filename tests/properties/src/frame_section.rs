//! An `.eh_frame` and its `.eh_frame_hdr`, written of choices: always well-formed, whatever its
//! instructions say.

use crate::choices::Choices;
use crate::meaning::{Processor, leb};

/// Where the `.eh_frame` lies.
pub const FRAMES: u64 = 0x10_0000;
/// Where the `.eh_frame_hdr` lies.
pub const HEADER: u64 = 0x20_0000;
/// Where the code begins.
pub const TEXT: u64 = 0x1000;

const MAX_FUNCTIONS: u64 = 6;
const MAX_INSTRUCTIONS: u64 = 12;

/// See the module's text.
#[derive(Debug)]
pub struct FrameSection {
    /// The `.eh_frame`.
    pub frames: Vec<u8>,
    /// The `.eh_frame_hdr`.
    pub header: Vec<u8>,
    /// Behind the last function.
    pub text_end: u64,
}

impl FrameSection {
    /// Of these choices.
    pub fn new(choices: &mut Choices<'_>, processor: Processor) -> FrameSection {
        let is_signal = choices.byte() == 7;
        let mut common = vec![0, 0, 0, 0, 1];
        common.extend(if is_signal { &b"zRS\0"[..] } else { b"zR\0" });
        common.push(choices.one_of(&[1, 4, 2]));
        common.extend(leb(choices.one_of(&[-8, -4, 8, 1])));
        // One byte of augmentation: pointers of eight bytes.
        common.extend([processor.return_address as u8, 1, 0]);
        match choices.byte() % 8 {
            0 => instructions(choices, processor, &mut common),
            // As compilers write it: CFA = sp, behind the return address where there is one.
            _ => common.extend(if processor.aarch64 { &[0x0c, 31, 0][..] } else { &[0x0c, 7, 8, 0x90, 1] }),
        }
        let mut frames = Vec::new();
        push(&mut frames, &common);
        let mut table = Vec::new();
        let mut at = TEXT;
        for _ in 0..1 + choices.below(MAX_FUNCTIONS) {
            at += choices.below(40);
            let length = 1 + choices.below(600);
            table.push((at, FRAMES + frames.len() as u64));
            let mut description = (frames.len() as u32 + 4).to_le_bytes().to_vec();
            description.extend(at.to_le_bytes());
            description.extend(length.to_le_bytes());
            description.push(0);
            instructions(choices, processor, &mut description);
            push(&mut frames, &description);
            at += length;
        }
        frames.extend([0; 4]);
        FrameSection { frames, header: header(&table), text_end: at }
    }
}

/// Version, encodings, the section's address and the count as four bytes each, and the search table
/// relative to the header.
fn header(table: &[(u64, u64)]) -> Vec<u8> {
    let mut header = vec![1, 0x1b, 0x03, 0x3b];
    header.extend((FRAMES.wrapping_sub(HEADER + 4) as u32).to_le_bytes());
    header.extend((table.len() as u32).to_le_bytes());
    for &(start, description) in table {
        header.extend((start.wrapping_sub(HEADER) as u32).to_le_bytes());
        header.extend((description.wrapping_sub(HEADER) as u32).to_le_bytes());
    }
    header
}

fn push(section: &mut Vec<u8>, entry: &[u8]) {
    let length = entry.len().next_multiple_of(4);
    section.extend((length as u32).to_le_bytes());
    section.extend(entry);
    section.resize(section.len() + length - entry.len(), 0);
}

fn uleb(mut value: u64) -> Vec<u8> {
    let mut out = Vec::new();
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
    out
}

fn instructions(choices: &mut Choices<'_>, processor: Processor, out: &mut Vec<u8>) {
    for _ in 0..choices.below(MAX_INSTRUCTIONS) {
        instruction(choices, processor, out);
    }
}

fn register(choices: &mut Choices<'_>, processor: Processor) -> u8 {
    let Processor { fp, sp, return_address, .. } = processor;
    choices.one_of(&[fp as u8, fp as u8, sp as u8, return_address as u8, 3, 12, 40])
}

fn expression(choices: &mut Choices<'_>) -> Vec<u8> {
    let mut code = match choices.byte() % 6 {
        // As linkers write it for a PLT.
        0 => {
            vec![0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x30 + choices.below(20) as u8, 0x2a, 0x33, 0x24, 0x22]
        }
        // As compilers do for realigned stacks.
        1 => [&[0x76][..], &leb(choices.offset()), &[0x06]].concat(),
        2 => vec![0x76, 0],
        _ => choices.some_bytes().to_vec(),
    };
    code.truncate(100);
    [uleb(code.len() as u64), code].concat()
}

/// Any of DWARF's (DWARF 5, section 6.4.2), the usual ones likelier.
fn instruction(choices: &mut Choices<'_>, processor: Processor, out: &mut Vec<u8>) {
    let unsigned = |choices: &mut Choices<'_>| match choices.below(3) {
        0 | 1 => uleb(choices.below(20)),
        _ => uleb(choices.word()),
    };
    match choices.below(28) {
        0..=3 => out.push(0x40 | choices.below(64) as u8),
        4 => out.extend([0x02, choices.byte()]),
        5 => out.extend([0x03, choices.byte(), choices.byte() % 4]),
        6 => out.extend([&[0x04][..], &(choices.word() as u32).to_le_bytes()].concat()),
        7 => out.extend([&[0x01][..], &(TEXT + choices.below(0x800)).to_le_bytes()].concat()),
        8 | 9 => {
            out.extend([0x0c, register(choices, processor)]);
            out.extend(unsigned(choices));
        }
        10 | 11 => out.extend([0x0d, register(choices, processor)]),
        12 | 13 => out.extend([vec![0x0e], unsigned(choices)].concat()),
        14 => out.extend([vec![0x0f], expression(choices)].concat()),
        15 | 16 => {
            out.push(0x80 | register(choices, processor) & 0x3f);
            out.extend(unsigned(choices));
        }
        17 => out.push(0xc0 | register(choices, processor) & 0x3f),
        18 => {
            let code = choices.one_of(&[0x05, 0x14, 0x2f]);
            out.extend([code, register(choices, processor)]);
            out.extend(unsigned(choices));
        }
        19 => {
            let code = choices.one_of(&[0x11, 0x15, 0x12]);
            out.extend([code, register(choices, processor)]);
            out.extend(leb(choices.offset() / 8));
        }
        20 => out.extend([choices.one_of(&[0x06, 0x07, 0x08]), register(choices, processor)]),
        21 => out.extend([0x09, register(choices, processor), register(choices, processor)]),
        22 => {
            out.extend([choices.one_of(&[0x10, 0x16]), register(choices, processor)]);
            out.extend(expression(choices));
        }
        23 => out.push(0x0a),
        24 => out.push(0x0b),
        25 => out.extend([vec![0x13], leb(choices.offset() / 8)].concat()),
        26 => out.extend([vec![0x2e], unsigned(choices)].concat()),
        _ => out.push(choices.one_of(&[0x00, 0x2d, 0x3e])),
    }
}
