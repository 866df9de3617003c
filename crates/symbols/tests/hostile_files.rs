//! Small files whose look-ups would take very long, or very much memory, if they were believed.

#[path = "../../../tests/properties/src/counting.rs"]
mod counting;

use counting::{Counting, forget_most, held_bytes};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;
use swipr_symbols::elf::ElfFile;
use swipr_symbols::symbolizer::{Budget, Lookup, ObjectKey, Symbolizer};

#[global_allocator]
static HEAP: Counting = Counting;

const CODE: u64 = 0x1000;
const MEMORY: usize = 8 << 20;
const BUDGET: Budget = Budget { memory_bytes: MEMORY, debug_bytes: 1 << 30, file_bytes: 1 << 30 };

/// A section: its name, type, flags, address, bytes, the section that it refers to.
type Part<'a> = (&'a str, u32, u64, u64, &'a [u8], u32);

/// An ELF file with these sections behind the first and `.text`, and another one with their names.
fn elf(parts: &[Part], more_headers: u32, names: &[u8]) -> Vec<u8> {
    let text: Part = (".text", 1, 6, CODE, &[0x90; 0x1000], 0);
    let (mut names, mut body, mut headers) = (names.to_vec(), Vec::new(), vec![0; 64]);
    for part in [text].iter().chain(parts) {
        let &(name, kind, flags, address, bytes, link) = part;
        header(&mut headers, names.len() as u32, [kind, link], flags, address, 64 + body.len(), bytes.len());
        names.extend(name.bytes().chain([0]));
        body.extend(bytes);
    }
    header(&mut headers, 0, [3, 0], 0, 0, 64 + body.len(), names.len());
    body.extend(names);
    let index = headers.len() / 64 - 1;
    (0..more_headers).for_each(|_| header(&mut headers, 0, [1, 0], 0, 0, 64, 0));
    let mut file = b"\x7fELF\x02\x01\x01".to_vec();
    file.resize(16, 0);
    file.extend([3, 0, 62, 0, 1, 0, 0, 0]);
    file.extend([0; 16]);
    file.extend((64 + body.len() as u64).to_le_bytes());
    file.extend([0, 0, 0, 0, 64, 0, 56, 0, 0, 0, 64, 0]);
    file.extend(((headers.len() / 64) as u16).to_le_bytes());
    file.extend((index as u16).to_le_bytes());
    [file, body, headers].concat()
}

fn header(
    into: &mut Vec<u8>,
    name: u32,
    [kind, link]: [u32; 2],
    flags: u64,
    address: u64,
    at: usize,
    size: usize,
) {
    into.extend([name, kind].map(u32::to_le_bytes).concat());
    into.extend([flags, address, at as u64, size as u64].map(u64::to_le_bytes).concat());
    into.extend([link, 0].map(u32::to_le_bytes).concat());
    into.extend([1, if kind == 2 { 24 } else { 0 }].map(u64::to_le_bytes).concat());
}

/// One function at each address from [`CODE`] on, all with the first name of the strings.
fn symbols(count: u64) -> Vec<u8> {
    let symbol =
        |n| [[1, 0, 0, 0, 0x12, 0, 1, 0].to_vec(), [CODE + n, 1].map(u64::to_le_bytes).concat()].concat();
    (0..count).flat_map(symbol).collect()
}

/// A unit with all of the code, and the abbreviations and lines of its entry: `.debug_info`,
/// `.debug_abbrev`, `.debug_line`.
fn unit(children: &[u8], abbreviations: &[u8], header: &[u8], program: &[u8]) -> [Vec<u8>; 3] {
    let with_length = |bytes: Vec<u8>| [(bytes.len() as u32).to_le_bytes().to_vec(), bytes].concat();
    let mut info = vec![4, 0, 0, 0, 0, 0, 8, 1];
    info.extend([CODE, 0x1000].map(u64::to_le_bytes).concat());
    info.extend([0; 4]);
    info.extend(children);
    // DW_TAG_compile_unit: DW_AT_low_pc, DW_AT_high_pc (data8), DW_AT_stmt_list.
    let own = [1, 0x11, 1, 0x11, 0x01, 0x12, 0x07, 0x10, 0x17, 0, 0];
    let head = [&[1, 1, 1, 0xfb, 14, 13, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1, 0][..], header, &[0]].concat();
    let lines = [&4u16.to_le_bytes()[..], &(head.len() as u32).to_le_bytes(), &head, program].concat();
    [with_length(info), [&own, abbreviations, &[0]].concat(), with_length(lines)]
}

fn with_unit([info, abbreviations, lines]: &[Vec<u8>; 3]) -> Vec<u8> {
    let parts: [Part; 3] = [
        (".debug_info", 1, 0, 0, info, 0),
        (".debug_abbrev", 1, 0, 0, abbreviations, 0),
        (".debug_line", 1, 0, 0, lines, 0),
    ];
    elf(&parts, 0, &[0])
}

/// Looks an address up; the most memory that took.
fn looked_up(file: Vec<u8>) -> usize {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let image: Arc<[u8]> = file.into();
        let before = held_bytes().0;
        forget_most();
        assert!(ElfFile::from_memory(image.clone()).is_ok());
        let key = ObjectKey { image: Some(image), ..ObjectKey::at("[image]", &[]) };
        let mut symbolizer = Symbolizer::new(BUDGET);
        (0..4).for_each(|n| drop(symbolizer.resolve(&key, CODE + 0x10 * n, Lookup::Pc)));
        let _ = sender.send((held_bytes().1 - before) as usize);
    });
    receiver.recv_timeout(Duration::from_secs(60)).expect("it comes to an end")
}

#[track_caller]
fn is_cheap(file: Vec<u8>) {
    let (size, most) = (file.len(), looked_up(file));
    println!("{size} bytes: {most} bytes of memory at most");
    assert!(most < 4 * MEMORY + 4 * size, "a file of {size} bytes took {most} bytes of memory");
}

/// Regression: the same two instructions were read for ever, by a thread of the program.
#[test]
fn lines_whose_length_goes_beyond_all_addresses_come_to_an_end() {
    // DW_LNS_negate_stmt, then an extended opcode that ends at 2^64 - 1 behind it.
    let length = [0xf4, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
    let program = [&[0x06, 0][..], &length, &[0x80], &[0; 100]].concat();
    is_cheap(with_unit(&unit(&[0], &[], &[], &program)));
}

#[test]
fn entries_with_thousands_of_attributes_come_to_an_end() {
    // DW_TAG_lexical_block with DW_AT_external (DW_FORM_flag_present) again and again.
    let many = [&[2, 0x0b, 0][..], &[0x3f, 0x19].repeat(50_000), &[0, 0]].concat();
    is_cheap(with_unit(&unit(&[2; 500_000], &many, &[], &[])));
}

/// Regression: a megabyte of a file took gigabytes.
#[test]
fn sections_with_the_same_long_name_are_cheap() {
    is_cheap(elf(&[], 20_000, &[&[b'x'; 500_000][..], &[0]].concat()));
}

#[test]
fn functions_with_the_same_long_name_are_cheap() {
    let names = [&[0][..], &[b'x'; 900_000], &[0]].concat();
    is_cheap(elf(&[(".symtab", 2, 0, 0, &symbols(2000), 3), (".strtab", 3, 0, 0, &names, 0)], 0, &[0]));
}

#[test]
fn abbreviations_are_read_up_to_a_limit() {
    let many: Vec<u8> = (2..2_000_000u32).flat_map(|n| [uleb(n), vec![0x2e, 0, 0, 0]].concat()).collect();
    is_cheap(with_unit(&unit(&[0], &many, &[], &[])));
}

#[test]
fn names_of_files_are_read_up_to_a_limit() {
    is_cheap(with_unit(&unit(&[0], &[], &[b'a', 0, 0, 0, 0].repeat(1_000_000), &[])));
}

fn uleb(mut number: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let low = number as u8 & 0x7f;
        number >>= 7;
        bytes.push(low | if number == 0 { 0 } else { 0x80 });
        if number == 0 {
            return bytes;
        }
    }
}
