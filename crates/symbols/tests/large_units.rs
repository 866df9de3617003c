//! Debug information that is larger than what may be in memory: what is read, and what is
//! allocated.

// Not the whole of its crate: this test's program is what is looked up, and as large as what it
// uses.
#[path = "../../../tests/properties/src/counting.rs"]
mod counting;
mod support;

use counting::{Counting, forget_most, held_bytes};
use support::{Random, directory, frames, function, key, run, section};
use swipr_symbols::symbolizer::{Budget, Detail, Lookup, ObjectKey, Symbolizer};

#[global_allocator]
static HEAP: Counting = Counting;

/// Bytes that this thread has read so far.
fn read_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/io").unwrap();
    text.lines().find_map(|line| line.strip_prefix("rchar: ")).unwrap().parse().unwrap()
}

/// This test's own program, which has the debug information of a hundred units, and addresses in no
/// order.
fn questions() -> (ObjectKey, Vec<u64>) {
    let this = std::env::current_exe().unwrap();
    let (start, size) = section(&this, ".text");
    let mut random = Random(11);
    (key(&this), (0..3000).map(|_| start + random.below(size)).collect())
}

fn with_memory(memory_bytes: usize) -> Symbolizer {
    Symbolizer::new(Budget { memory_bytes, ..Budget::default() })
}

/// A program with 600 MB of debug information took minutes instead of seconds for its first ten
/// thousand addresses.
#[test]
fn with_little_memory_no_unit_is_looked_through_again_and_again() {
    let (key, addresses) = questions();
    let reads = |symbolizer: &mut Symbolizer| {
        let before = read_bytes();
        for &address in &addresses {
            symbolizer.resolve(&key, address, Lookup::Pc);
        }
        read_bytes() - before
    };
    let mut roomy = with_memory(1 << 30);
    let once = reads(&mut roomy);
    let mut tight = with_memory(roomy.stats().bytes / 4);
    let with_little = reads(&mut tight);
    assert!(tight.stats().shrunk_objects > 10, "{:?}", tight.stats());
    assert_eq!(tight.stats().dropped_objects, 0);
    println!("{once} bytes read, {with_little} with little memory");
    assert!(with_little < 8 * once, "{with_little} bytes were read instead of {once}");
}

#[test]
fn no_more_is_allocated_than_the_budget_says() {
    let (key, addresses) = questions();
    let mut roomy = with_memory(1 << 30);
    for &address in &addresses {
        roomy.resolve(&key, address, Lookup::Pc);
    }
    let memory_bytes = roomy.stats().bytes / 2;
    drop(roomy);
    let mut tight = with_memory(memory_bytes);
    // To sort symbols takes more than to keep them.
    tight.resolve_with(&key, addresses[0], Lookup::Pc, Detail::Names);
    let before = held_bytes().0 - tight.stats().bytes as isize;
    forget_most();
    for &address in &addresses {
        tight.resolve(&key, address, Lookup::Pc);
    }
    assert!(tight.stats().shrunk_objects > 2, "{:?}", tight.stats());
    let most = (held_bytes().1 - before) as usize;
    println!("{most} bytes at most, {memory_bytes} allowed");
    assert!(most < memory_bytes + memory_bytes / 4, "{most} bytes were allocated, {memory_bytes} allowed");
}

/// The functions behind the first quarter of a megabyte of a unit were not found.
#[test]
fn every_function_of_a_unit_is_found_that_is_read_in_parts() {
    const FUNCTIONS: usize = 3000;
    let directory = directory("large_unit");
    let (source, program) = (directory.join("large.c"), directory.join("large"));
    let function_of = |n| format!("int outer{n}(int x) {{\n  return inner{n}(x) ^ x;\n}}\n");
    let inlined = |n| format!("static inline int inner{n}(int x) {{ return x % (x * {n} + 7); }}\n");
    let text: String = (0..FUNCTIONS).map(|n| inlined(n) + &function_of(n)).collect();
    std::fs::write(&source, text).unwrap();
    let [from, to] = [&source, &program].map(|path: &std::path::PathBuf| path.to_str().unwrap());
    run("gcc", &["-g", "-O2", "-shared", "-fPIC", "-o", to, from]);
    let some = [0, 1, FUNCTIONS / 2, FUNCTIONS - 1];
    let places = some.map(|n| function(&program, |name| name == format!("outer{n}")));
    assert!(section(&program, ".debug_info").1 > 300 << 10);
    run("objcopy", &["--strip-all", "--keep-section=.debug_*", to]);
    for (n, (start, size)) in some.into_iter().zip(places) {
        let mut symbolizer = with_memory(64 << 20);
        let (outer, line) = (format!("outer{n}"), 4 * n as u32 + 1);
        let key = key(&program);
        let answers: Vec<_> =
            (start..start + size).map(|at| symbolizer.resolve(&key, at, Lookup::Pc)).collect();
        let inner = format!("inner{n}");
        let chain = [(&*inner, Some(line), true), (&*outer, Some(line + 2), false)];
        assert!(answers.iter().any(|answer| frames(answer) == chain), "{n}: {answers:?}");
    }
}

/// Each recording of a program with a compressed C library took 25 ms for its first function.
#[test]
fn a_compressed_file_is_decompressed_as_far_as_its_units_are_needed() {
    let directory = directory("compressed_units");
    let path = |name: &str| directory.join(name).to_str().unwrap().to_owned();
    let many: String = (0..3000).map(|n| format!("int many{n}(int x) {{ return x * {n}; }}\n")).collect();
    let [first, other] = [("first", "x"), ("other", "x + 1")]
        .map(|(name, result)| (name, format!("int {name}(int x) {{ return {result}; }}\n")));
    let mut link = vec!["-g".to_owned(), "-shared".into(), "-gz=zlib".into(), "-o".into(), path("program")];
    for (name, text) in [first, ("many", many), other] {
        let [source, object] = [path(&format!("{name}.c")), path(&format!("{name}.o"))];
        std::fs::write(&source, text).unwrap();
        run("gcc", &["-g", "-fPIC", "-c", "-o", &object, &source]);
        if name == "other" {
            run("objcopy", &["--remove-section=.debug_aranges", &object]);
        }
        link.push(object);
    }
    run("gcc", &link.iter().map(String::as_str).collect::<Vec<_>>());
    let program = directory.join("program");
    let mut symbolizer = with_memory(64 << 20);
    let (key, mut bytes) = (key(&program), Vec::new());
    for name in ["first", "other", "many2999"] {
        let (address, _) = function(&program, |it| it == name);
        let answer = symbolizer.resolve(&key, address, Lookup::Pc);
        let line = if name == "many2999" { 3000 } else { 1 };
        assert_eq!(frames(&answer), [(name, Some(line), false)]);
        bytes.push(symbolizer.stats().bytes);
    }
    let full = 3000 * 40;
    assert!(bytes[1] > bytes[0] + full, "the unit that is not in the list is the last one: {bytes:?}");
}
