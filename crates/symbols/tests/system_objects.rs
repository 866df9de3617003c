//! The objects that every process has, budgets, garbage, and a comparison with
//! binutils over whole programs.

mod support;

use object::{Object, ObjectSymbol};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use support::{Random, compile, directory, function, key, section};
use swipr_symbols::elf::ElfFile;
use swipr_symbols::symbolizer::{Budget, Lookup, ObjectKey, Symbol, Symbolizer};
use swipr_symbols::symbols::{SymbolTable, described_functions};

const LIMIT: u64 = 1 << 30;

/// The line of this process's memory map that ends so.
fn mapping(ending: &str) -> Option<(u64, u64, String)> {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let line = maps.lines().find(|line| line.ends_with(ending))?;
    let (range, rest) = line.split_once(' ')?;
    let (start, end) = range.split_once('-')?;
    let name = rest.split_whitespace().last()?.to_owned();
    Some((u64::from_str_radix(start, 16).ok()?, u64::from_str_radix(end, 16).ok()?, name))
}

fn libc() -> PathBuf {
    mapping("/libc.so.6").expect("a process with glibc").2.into()
}

#[test]
fn a_stripped_library_blames_no_exported_neighbour() {
    let path = support::directory("stripped_libc").join("libc.so.6");
    std::fs::copy(libc(), &path).unwrap();
    support::run("strip", &[path.to_str().unwrap()]);
    let bytes = std::fs::read(&path).unwrap();
    let file = object::File::parse(&*bytes).unwrap();
    let exported: Vec<_> = file.dynamic_symbols().filter(|symbol| symbol.size() != 0).collect();
    let elf = ElfFile::open(&path, LIMIT).unwrap();
    let table = SymbolTable::read(&elf, None, LIMIT);
    let (mut named, mut unnamed) = (0, 0);
    for function in described_functions(&elf, LIMIT) {
        let middle = function.start + (function.end - function.start) / 2;
        let Some(found) = table.find(middle) else {
            unnamed += 1;
            continue;
        };
        named += 1;
        if !found.name.ends_with("@plt") {
            let is_inside = exported
                .iter()
                .any(|symbol| symbol.address() == found.start && middle < symbol.address() + symbol.size());
            assert!(is_inside, "{} at {middle:#x}", found.name);
        }
    }
    assert!(named > 500, "only {named} functions have names");
    assert!(unnamed > 500, "only {unnamed} functions of a stripped library have no name");
    // What a thread's root was seen to be called on Debian: the exported function
    // that lies, with a large hole behind it, before the C library's own.
    if let Some(neighbour) = exported.iter().find(|symbol| symbol.name() == Ok("__xmknodat")) {
        let behind = neighbour.address() + neighbour.size();
        for address in behind..behind + 4096 {
            assert_ne!(table.find(address).map(|found| found.name), Some("__xmknodat".into()));
        }
    }
}

#[test]
fn the_vdso_is_read_from_memory() {
    // Not every sandbox's kernel has one.
    let Some((start, end, name)) = mapping("[vdso]") else { return };
    let mut image = vec![0; (end - start) as usize];
    std::fs::File::open("/proc/self/mem").unwrap().read_exact_at(&mut image, start).unwrap();
    let image: Arc<[u8]> = image.into();
    let file = object::File::parse(&*image).unwrap();
    let clock =
        file.dynamic_symbols().find(|symbol| symbol.name().is_ok_and(|name| name.ends_with("clock_gettime")));
    let clock = clock.expect("clock_gettime in the vdso");
    let key = ObjectKey { image: Some(image.clone()), ..ObjectKey::at(&name, &[]) };
    let mut symbolizer = Symbolizer::new(Budget::default());
    let found = symbolizer.resolve(&key, clock.address() + 1, Lookup::Pc);
    assert!(found[0].name.ends_with("clock_gettime"), "{found:?}");
    assert_eq!(found[0].offset, 1);
}

#[test]
fn answers_are_kept_and_objects_dropped_within_the_budget() {
    let directory = directory("budget");
    let program = compile(&directory, "inlines.c", &["-g", "-O2"]);
    let copies: Vec<_> = (0..6)
        .map(|n| {
            let copy = directory.join(format!("copy{n}"));
            std::fs::copy(&program, &copy).unwrap();
            key(&copy)
        })
        .collect();
    let (hidden, size) = function(&program, |name| name == "hidden");
    let fresh = support::resolve_all(&copies[0], (hidden, size));
    let mut roomy = Symbolizer::new(Budget::default());
    for _ in 0..2 {
        for key in &copies {
            assert_eq!(roomy.resolve(key, hidden, Lookup::Pc), fresh[0]);
        }
    }
    let stats = roomy.stats();
    assert_eq!((stats.objects, stats.hits, stats.misses, stats.dropped_objects), (6, 6, 6, 0));
    assert!(stats.bytes > 0);
    let mut tight = Symbolizer::new(Budget { memory_bytes: stats.bytes / 2, ..Budget::default() });
    for (offset, expected) in fresh.iter().enumerate() {
        for key in &copies {
            assert_eq!(tight.resolve(key, hidden + offset as u64, Lookup::Pc), *expected);
            assert!(tight.stats().bytes <= stats.bytes / 2);
        }
    }
    assert!(tight.stats().dropped_objects > 6);
    // What is used all the time is not what goes.
    for favourite in 0..copies.len() {
        let mut tight = Symbolizer::new(Budget { memory_bytes: stats.bytes / 2, ..Budget::default() });
        for round in 0..30 {
            tight.resolve(&copies[favourite], hidden, Lookup::Pc);
            tight.resolve(&copies[(favourite + 1 + round % 5) % copies.len()], hidden, Lookup::Pc);
        }
        assert!(tight.stats().dropped_objects > 5);
        assert_eq!(tight.stats().hits, 29);
    }
    roomy.drop_all();
    assert_eq!((roomy.stats().objects, roomy.stats().bytes), (0, 0));
    assert_eq!(roomy.resolve(&copies[0], hidden, Lookup::Pc), fresh[0]);
}

#[test]
fn a_symbolizer_may_move_to_another_thread() {
    fn moves<T: Send>(value: T) -> T {
        std::thread::scope(|scope| scope.spawn(|| value).join()).unwrap()
    }
    assert_eq!(moves(Symbolizer::new(Budget::default())).stats().objects, 0);
}

#[test]
fn debug_information_over_the_budget_is_left_out_and_counted() {
    let program = compile(&directory("debug_budget"), "inlines.c", &["-g", "-O2"]);
    let (outer, _) = function(&program, |name| name == "outer");
    let mut symbolizer = Symbolizer::new(Budget { debug_bytes: 100, ..Budget::default() });
    let found = symbolizer.resolve(&key(&program), outer, Lookup::Pc);
    assert_eq!((&*found[0].name, found[0].line), ("outer", None));
    assert_eq!(symbolizer.stats().without_lines, 1);
    let mut symbolizer = Symbolizer::new(Budget { file_bytes: 100, ..Budget::default() });
    assert!(symbolizer.resolve(&key(&program), outer, Lookup::Pc).is_empty());
    assert_eq!(symbolizer.stats().refused_files, 1);
}

/// Regression: with a gigabyte of debug information all of it was searched again whenever the
/// memory was full.
#[test]
fn parsed_debug_information_that_was_dropped_is_read_again_and_says_the_same() {
    let this = std::env::current_exe().unwrap();
    let (start, size) = section(&this, ".text");
    let mut random = Random(7);
    let addresses: Vec<_> = (0..400).map(|_| start + random.below(size)).collect();
    let mut roomy = Symbolizer::new(Budget { memory_bytes: 1 << 30, ..Budget::default() });
    let key = key(&this);
    let expected: Vec<_> = addresses.iter().map(|&at| roomy.resolve(&key, at, Lookup::Pc)).collect();
    assert!(expected.iter().filter(|answer| answer.len() > 1).count() > 50, "hardly anything is inlined");
    assert_eq!(roomy.stats().shrunk_objects, 0);
    let memory_bytes = roomy.stats().bytes / 2;
    let mut tight = Symbolizer::new(Budget { memory_bytes, ..Budget::default() });
    for (&address, expected) in addresses.iter().zip(&expected) {
        assert_eq!(tight.resolve(&key, address, Lookup::Pc), *expected, "{address:#x}");
        assert!(tight.stats().bytes <= memory_bytes);
    }
    let stats = tight.stats();
    assert!(stats.shrunk_objects > 0 && stats.dropped_objects == 0, "{stats:?}");
    assert_eq!(stats.without_lines, 0);
}

/// Clang's debug build has 60 MiB of names: all were dropped, and each offset was counted from the
/// address itself.
#[test]
fn names_that_are_too_many_to_keep_are_read_from_the_file() {
    let program = compile(&directory("many_names"), "inlines.c", &["-O2"]);
    let (hidden, size) = function(&program, |name| name == "hidden");
    let elf = ElfFile::open(&program, LIMIT).unwrap();
    let strings = elf.section(".strtab").unwrap().size;
    let bytes = std::fs::read(&program).unwrap();
    let file = object::File::parse(&*bytes).unwrap();
    let (kept, left) = (SymbolTable::read(&elf, None, LIMIT), SymbolTable::read(&elf, None, 8 * strings - 1));
    assert!(!left.is_over_limit() && left.len() == kept.len());
    for address in (hidden..hidden + size).chain(file.symbols().map(|symbol| symbol.address())) {
        assert_eq!(left.find(address), kept.find(address), "{address:#x}");
    }
    assert_eq!(left.find(hidden + 1).unwrap().name, "hidden");
}

#[test]
fn without_room_for_symbols_the_offsets_are_those_of_the_unwind_information() {
    let directory = directory("no_room");
    let (source, many) = (directory.join("many.s"), directory.join("many.o"));
    let label = |n| format!("many{n}: ret\n.type many{n}, @function\n.size many{n}, 1\n");
    std::fs::write(&source, (0..20_000).map(label).collect::<String>()).unwrap();
    support::run("as", &[source.to_str().unwrap(), "-o", many.to_str().unwrap()]);
    let program = compile(&directory, "inlines.c", &["-g", "-O2", many.to_str().unwrap()]);
    let (hidden, size) = function(&program, |name| name == "hidden");
    let mut symbolizer = Symbolizer::new(Budget { memory_bytes: 600 << 10, ..Budget::default() });
    for address in hidden..hidden + size {
        let found = symbolizer.resolve(&key(&program), address, Lookup::Pc);
        let outer = found.last().unwrap();
        assert_eq!((&*outer.name, outer.offset), ("hidden", address - hidden));
        assert!(outer.line.is_some());
    }
    assert_eq!((symbolizer.stats().without_symbols, symbolizer.stats().without_lines), (1, 0));
}

/// Two megabytes of debug information whose entries all have the same list of ranges: one address
/// would read thousands of millions of them.
#[test]
fn entries_that_share_long_lists_of_ranges_come_to_an_end() {
    let directory = directory("shared_ranges");
    let (source, library) = (directory.join("shared.s"), directory.join("shared.so"));
    let text = "
        .text\n.globl f\n.type f,@function\nf: .fill 64,1,0x90\n.size f,64
        .section .debug_abbrev\n.uleb128 1,0x11\n.byte 1\n.uleb128 0x11,1,0x12,7,0,0
        .uleb128 2,0x2e\n.byte 1\n.uleb128 3,8,0x11,1,0x12,7,0,0
        .uleb128 3,0x1d\n.byte 0\n.uleb128 0x55,0x17,0,0,0
        .section .debug_info\n.long 2f-1f\n1: .short 4\n.long 0\n.byte 8
        .uleb128 1\n.quad f,64\n.uleb128 2\n.asciz \"of_dwarf\"\n.quad f,64
        .rept 60000\n.uleb128 3\n.long 0\n.endr\n.byte 0,0\n2:
        .section .debug_ranges\n.rept 60000\n.quad 0x100000,0x100001\n.endr\n.quad 0,0\n";
    std::fs::write(&source, text).unwrap();
    let [from, to] = [&source, &library].map(|path: &PathBuf| path.to_str().unwrap());
    support::run("gcc", &["-shared", "-nostdlib", "-o", to, from]);
    let (start, _) = function(&library, |name| name == "f");
    let found = Symbolizer::new(Budget::default()).resolve(&key(&library), start, Lookup::Pc);
    assert_eq!((found.len(), &*found[0].name), (1, "f"));
}

#[test]
fn garbage_gives_fewer_names_and_never_a_panic() {
    let directory = directory("garbage");
    let mut random = Random(0xbad_5eed);
    let mut named = 0;
    for (program, rounds) in [
        (compile(&directory, "inlines.c", &["-g", "-O2", "-no-pie"]), 1500),
        (compile(&directory, "inlines.c", &["-g", "-O2", "-gz=zlib", "-gdwarf-4"]), 400),
        (compile(&directory, "names.cpp", &["-g", "-O1"]), 200),
    ] {
        let original = std::fs::read(&program).unwrap();
        let (main, size) = function(&program, |name| name == "main");
        // The headers and tables that everything hangs on are hit more often.
        let sections = u64::from_le_bytes(original[40..48].try_into().unwrap());
        let table = sections..original.len() as u64;
        for round in 0..rounds {
            let mut bytes = original.clone();
            for _ in 0..1 + random.below(if round % 4 == 0 { 2000 } else { 20 }) {
                let at = match random.below(8) {
                    0 => random.below(64),
                    1 | 2 => table.start + random.below(table.end - table.start),
                    _ => random.below(bytes.len() as u64),
                };
                bytes[at as usize] = random.next() as u8;
            }
            if round % 3 != 0 {
                // Or the file's type alone would refuse most rounds.
                bytes[..64].copy_from_slice(&original[..64]);
            }
            if round % 10 == 0 {
                bytes.truncate(random.below(bytes.len() as u64) as usize);
            }
            let key = ObjectKey { image: Some(bytes.into()), ..ObjectKey::at("garbage", &[]) };
            let mut symbolizer = Symbolizer::new(Budget::default());
            for address in (main..main + size).step_by(7).chain([0, 1, main - 1, u64::MAX, random.next()]) {
                named += symbolizer.resolve(&key, address, Lookup::Pc).len();
                symbolizer.resolve(&key, address, Lookup::ReturnAddress);
            }
        }
    }
    assert!(named > 1000, "only {named} names: the damage is so large that nothing is tested");
}

/// What `addr2line -fiC` prints for each address: function, file name and line.
fn binutils(program: &Path, addresses: &[u64]) -> Option<Vec<Vec<(String, String)>>> {
    let mut child = Command::new("addr2line")
        .args(["-afiC", "-e"])
        .arg(program)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .ok()?;
    let mut input = child.stdin.take()?;
    let list: String = addresses.iter().map(|address| format!("{address:#x}\n")).collect();
    let writer = std::thread::spawn(move || std::io::Write::write_all(&mut input, list.as_bytes()));
    let output = child.wait_with_output().ok()?;
    writer.join().unwrap().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let mut answers: Vec<Vec<_>> = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if line.starts_with("0x") {
            answers.push(Vec::new());
        } else {
            let place = lines.next().unwrap().split(" (discriminator").next().unwrap();
            let place = place.rsplit('/').next().unwrap();
            answers.last_mut().unwrap().push((line.to_owned(), place.to_owned()));
        }
    }
    Some(answers)
}

fn place(symbol: &Symbol) -> String {
    let file = symbol.file.as_deref().and_then(|file| file.rsplit('/').next()).unwrap_or("??");
    let line = symbol.line.map_or("?".to_owned(), |line| line.to_string());
    format!("{file}:{line}")
}

/// A name without what the two demanglers write differently.
fn plain(name: &str) -> String {
    name.replace(' ', "")
}

#[test]
fn binutils_says_the_same() {
    let directory = directory("binutils");
    for (name, flags, share) in [
        ("inlines.c", &["-g", "-O2"][..], 0.99),
        ("names.cpp", &["-g", "-O2"], 0.99),
        ("modules.rs", &["-g", "-O"], 0.99),
    ] {
        let program = compile(&directory, name, flags);
        let (start, size) = section(&program, ".text");
        let step = (size / 5000).max(1);
        let addresses: Vec<_> = (start..start + size).step_by(step as usize).collect();
        let Some(theirs) = binutils(&program, &addresses) else { return };
        assert_eq!(theirs.len(), addresses.len());
        let (key, mut symbolizer) = (key(&program), Symbolizer::new(Budget::default()));
        let (mut known, mut compared, mut equal) = (0, 0, 0);
        for (&address, theirs) in addresses.iter().zip(&theirs) {
            let ours = symbolizer.resolve(&key, address, Lookup::Pc);
            // Without DWARF it has the name of an object file, which swipr does not show.
            if theirs.iter().any(|(name, place)| name == "??" || place.ends_with('?')) {
                continue;
            }
            known += 1;
            // Padding between functions: binutils gives it to the one before.
            if ours.is_empty() {
                continue;
            }
            compared += 1;
            let ours: Vec<_> = ours.iter().map(|symbol| (plain(&symbol.name), place(symbol))).collect();
            let theirs: Vec<_> = theirs.iter().map(|(name, place)| (plain(name), place.clone())).collect();
            // Of a few templates of the standard library the demangler can read the name only.
            let is_equal = |(ours, theirs): (&(String, String), &(String, String))| {
                ours.1 == theirs.1 && (ours.0 == theirs.0 || theirs.0.contains(&format!("{}(", ours.0)))
            };
            if ours.len() == theirs.len() && ours.iter().zip(&theirs).all(is_equal) {
                equal += 1;
            } else {
                println!("{address:#x}: {ours:?} {theirs:?}");
            }
        }
        println!("{name}: {equal} of {compared} of {known}");
        assert!(known > 100 && compared * 10 > known * 8, "{name}: {compared} of {known} have names");
        assert!(f64::from(equal) >= f64::from(compared) * share, "{name}: {equal} of {compared} agree");
    }
}
