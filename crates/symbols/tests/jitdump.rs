//! jitdump files as runtimes write them, byte by byte: names, lines, times, moves, and how frames
//! are left.

use swipr_symbols::jit::jitdump::{Reader, Unwinding};
use swipr_symbols::jit::{CodeMap, Function};

/// A file in the making.
struct Dump(Vec<u8>);

impl Dump {
    fn new() -> Dump {
        Dump::with_flags(0)
    }

    fn with_flags(flags: u64) -> Dump {
        let words = [0x4a69_5444_u32, 1, 40, 0, 0, 77];
        let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        bytes.extend(1_700_000_000_000_000_000_u64.to_le_bytes());
        bytes.extend(flags.to_le_bytes());
        Dump(bytes)
    }

    fn record(mut self, kind: u32, time: u64, numbers: &[u64], rest: &[&[u8]]) -> Dump {
        let rest = rest.concat();
        let length = (16 + 8 * numbers.len() + rest.len()) as u32;
        self.0.extend([kind, length].iter().flat_map(|word| word.to_le_bytes()));
        self.0.extend(time.to_le_bytes());
        self.0.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
        self.0.extend(rest);
        self
    }

    fn load(self, time: u64, start: u64, size: u64, name: &str) -> Dump {
        let code = vec![0x90; size as usize];
        self.record(0, time, &[77 << 32 | 77, start, start, size, 1], &[name.as_bytes(), b"\0", &code])
    }

    fn moved(self, time: u64, from: u64, to: u64, size: u64) -> Dump {
        self.record(1, time, &[77, to, from, to, size, 1], &[])
    }

    /// Entries with their files' names as they stand in the file.
    fn lines(self, start: u64, entries: &[(u64, u32, &[u8])]) -> Dump {
        let entry = |(address, line, file): &(u64, u32, &[u8])| {
            [&address.to_le_bytes()[..], &line.to_le_bytes(), &[0; 4], file, b"\0"].concat()
        };
        let count = entries.len() as u64;
        let entries: Vec<u8> = entries.iter().flat_map(entry).collect();
        self.record(2, 1, &[start, count], &[&entries])
    }

    fn read(&self) -> CodeMap {
        self.read_with_frames().0
    }

    fn read_with_frames(&self) -> (CodeMap, Vec<Unwinding>, usize) {
        let (mut map, mut frames) = (CodeMap::new(1 << 20), vec![]);
        let used = Reader::default().read(&self.0, &mut map, &mut |unwinding| frames.push(unwinding));
        (map, frames, used)
    }
}

fn function(map: &CodeMap, address: u64, time: u64) -> Option<(Function, u64)> {
    map.find(address, time).map(|found| (found.function, address - found.start))
}

fn place(map: &CodeMap, address: u64, time: u64) -> Option<(String, u32)> {
    let (function, offset) = function(map, address, time)?;
    function.place(offset).map(|(file, line)| (file.to_string(), line))
}

fn name(map: &CodeMap, address: u64, time: u64) -> Option<String> {
    function(map, address, time).map(|(function, _)| function.name.to_string())
}

/// As SpiderMonkey's shell writes it with `PERF_SPEW_DIR` and `IONPERF=src`: names with tiers,
/// lines of the source, one file name an entry, and inline caches and trampolines without lines.
/// Fuzzing found that the second half was read as a record.
#[test]
fn a_header_that_is_longer_than_what_is_known_may_come_in_halves() {
    let mut dump = Dump::new();
    dump.0[8] = 48;
    dump.0.extend([0; 8]);
    let dump = dump.load(1, 0x1000, 16, "late");
    let (mut reader, mut map) = (Reader::default(), CodeMap::new(1 << 20));
    assert_eq!(reader.read(&dump.0[..44], &mut map, &mut |_| {}), 0);
    assert_eq!(reader.read(&dump.0, &mut map, &mut |_| {}), dump.0.len());
    assert!(function(&map, 0x1000, 1).is_some());
}

#[test]
fn a_file_of_spidermonkey_has_names_with_tiers_and_lines_of_the_source() {
    let file = b"/srv/app/hot.js";
    let map = Dump::new()
        .load(10, 0x1000, 0x40, "Trampoline: EnterJIT")
        .lines(0x2000, &[(0x2000, 3, file), (0x2010, 4, file), (0x2024, 7, file)])
        .load(20, 0x2000, 0x40, "Baseline: hot (/srv/app/hot.js:3:13)")
        .load(21, 0x3000, 0x20, "IC: GetProp")
        .lines(0x4000, &[(0x4004, 4, file), (0x4010, 5, b"/srv/app/inlined.js")])
        .load(30, 0x4000, 0x80, "Ion: hot (/srv/app/hot.js:3:13)")
        .read();
    assert_eq!(name(&map, 0x1008, 40).as_deref(), Some("Trampoline: EnterJIT"));
    assert_eq!(place(&map, 0x1008, 40), None);
    assert_eq!(name(&map, 0x3008, 40).as_deref(), Some("IC: GetProp"));
    assert_eq!(name(&map, 0x2012, 40).as_deref(), Some("Baseline: hot (/srv/app/hot.js:3:13)"));
    let line = |address| place(&map, address, 40).map(|(_, line)| line);
    assert_eq!([0x2000, 0x200f, 0x2010, 0x203f].map(line), [Some(3), Some(3), Some(4), Some(7)]);
    assert_eq!([0x4000, 0x4004].map(line), [None, Some(4)]);
    assert_eq!(place(&map, 0x4044, 40), Some(("/srv/app/inlined.js".into(), 5)));
}

/// V8 counts lines' addresses from an ELF header in front of the code, and in its baseline tier was
/// seen (node 20) to write other bytes in the place of the file's name.
#[test]
fn lines_of_v8_are_where_the_code_is_though_the_header_is_counted_and_names_are_damaged() {
    let damaged = |bytes: &[u8]| [bytes, &[0xd8; 40][..]].concat()[..15].to_vec();
    let (first, second) = (damaged(b"\\\xd8\0\0\0\0\xa4"), damaged(b"\0\x01"));
    let map = Dump::new()
        .lines(0x1000, &[(0x1040, 2, b"/srv/app/hot.js"), (0x1050, 3, b"/srv/app/hot.js")])
        .load(10, 0x1000, 0x20, "JS:*hot /srv/app/hot.js:2:13")
        .lines(0x2000, &[(0x2040, 2, &first), (0x2046, 3, &second)])
        .load(10, 0x2000, 0x20, "JS:^hot /srv/app/hot.js:2:13")
        .read();
    for start in [0x1000, 0x2000] {
        let at = |offset: u64| place(&map, start + offset, 20).unwrap();
        assert_eq!(at(0), ("/srv/app/hot.js".into(), 2));
        assert_eq!(at(0x1f), ("/srv/app/hot.js".into(), 3));
    }
}

#[test]
fn lines_that_make_no_sense_are_none_and_the_same_file_again_is_that_file() {
    let map = Dump::new()
        .lines(0x1000, &[(0x1000, 1, b"a.py"), (0x1008, 2, b"\xff")])
        .load(10, 0x1000, 0x20, "py::f:a.py")
        .lines(0x2000, &[(0x2000, 1, b"a.py"), (0x9999_0000, 2, b"a.py")])
        .load(10, 0x2000, 0x20, "py::g:a.py")
        .lines(0x3000, &[(0x3000, 1, b"a\x01.py")])
        .load(10, 0x3000, 0x20, "py::h:a.py")
        .read();
    assert_eq!(place(&map, 0x1010, 20), Some(("a.py".into(), 2)));
    assert_eq!((place(&map, 0x2001, 20), place(&map, 0x3001, 20)), (None, None));
    assert!(name(&map, 0x2001, 20).is_some() && name(&map, 0x3001, 20).is_some());
}

#[test]
fn code_has_the_name_of_its_time_where_its_memory_is_used_again_or_it_moves() {
    let map = Dump::new()
        .load(10, 0x1000, 0x20, "first")
        .load(20, 0x1010, 0x20, "second")
        .moved(30, 0x1010, 0x5000, 0x20)
        .read();
    let at = |time| name(&map, 0x1018, time);
    assert_eq!([at(9), at(30)], [None, None]);
    assert_eq!([at(10).as_deref(), at(20).as_deref()], [Some("first"), Some("second")]);
    assert_eq!(name(&map, 0x5008, 30).as_deref(), Some("second"));
    assert_eq!(name(&map, 0x5008, 29), None);
}

#[test]
fn times_of_the_processors_own_counter_are_not_compared_with_ours() {
    let map = Dump::with_flags(1).load(u64::MAX / 2, 0x1000, 0x20, "f").read();
    assert_eq!(name(&map, 0x1000, 0).as_deref(), Some("f"));
}

#[test]
fn how_frames_are_left_is_told_with_the_next_function_and_without_its_search_table() {
    let (frames, table) = ([1_u8; 24], [2_u8; 20]);
    let (_, registered, _) = Dump::new()
        .record(4, 1, &[44, 20, 44], &[&frames, &table])
        .load(10, 0x1000, 0x23, "f")
        .record(4, 1, &[20, 20, 0], &[&table])
        .load(11, 0x2000, 0x20, "empty, as V8 writes it")
        .load(12, 0x3000, 0x20, "none")
        .record(4, 1, &[4, 20, 0], &[&table])
        .load(13, 0x4000, 0x20, "table larger than all")
        .read_with_frames();
    assert_eq!(registered.len(), 1);
    assert_eq!(
        (registered[0].start, registered[0].size, registered[0].section_address()),
        (0x1000, 0x23, 0x1028)
    );
    assert_eq!(&*registered[0].eh_frame, frames);
}

#[test]
fn a_torn_end_waits_and_what_is_no_record_or_behind_the_end_is_not_read() {
    let whole = Dump::new().load(10, 0x1000, 0x20, "f").load(10, 0x2000, 0x20, "g");
    let torn = Dump(whole.0[..whole.0.len() - 1].to_vec());
    let (map, _, used) = torn.read_with_frames();
    assert!(name(&map, 0x1000, 20).is_some() && name(&map, 0x2000, 20).is_none());
    assert!(whole.0.len() - used > 0x20);
    let closed = Dump::new().record(3, 1, &[], &[]).load(10, 0x1000, 0x20, "f");
    assert!(closed.read().is_empty());
    for length in [0_u32, 15, u32::MAX] {
        let mut damaged = Dump::new();
        damaged.0.extend([0, length, 0, 0].iter().flat_map(|word: &u32| word.to_le_bytes()));
        assert!(damaged.load(10, 0x1000, 0x20, "f").read().is_empty());
    }
    let mut other = Dump::new();
    other.0[0] ^= 1;
    assert!(other.load(10, 0x1000, 0x20, "f").read().is_empty());
}
