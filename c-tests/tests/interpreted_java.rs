//! Methods of Java between native frames, without any flag of Java's: a program of which every
//! possible stack is known, and points at which Java itself says what its stack is. Other Javas
//! besides the installed one are tried if the variable `JAVAS` names them, and more stacks if
//! `STACKS_OF_JAVA` says how many. The compiler is the installed one.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use swipr_c_tests::directory::Directory;
use swipr_c_tests::host::Host;
use swipr_c_tests::interpreted::{Frame, Stack, at_points_of, interpreters, record_running, start_command};

/// Stacks of each program, at least.
const LEAST: usize = 300;
/// In place of methods whose code was dropped before it was looked at.
const GONE: &str = "[methods whose code is gone]";
const FAMILIES: usize = 24;
/// The first and the last lines of a family's methods, in the order of calls.
const LINES: [(&str, [u64; 2]); 4] = [("r", [4, 5]), ("f", [7, 10]), ("g", [12, 14]), ("h", [16, 20])];
/// Flags with which methods are not optimized together.
const EXACT_FLAGS: [&str; 3] = ["-Xint", "-XX:TieredStopAtLevel=1", "-XX:-Inline"];
/// How f, g and h end, by how they call each other.
const CALLS: [(&str, [&str; 3]); 5] = [
    ("direct", ["return g(n) + 1;", "return h(n) + 1;", "return t;"]),
    (
        "callbacks",
        [
            "return many(n).map(x -> g(x)).max().getAsInt();",
            "List<Integer> s = some(n); s.sort((a, b) -> h(a)); return s.get(0);",
            "return t;",
        ],
    ),
    (
        "exceptions",
        [
            "try { return g(n); } catch (IllegalStateException e) { return n + 1; }",
            "try { return h(n) + 1; } finally { n += 1; }",
            "if (t >= 0) throw new IllegalStateException(); return t;",
        ],
    ),
    (
        "reflection",
        [
            "IntUnaryOperator o = Family_K::g; return o.applyAsInt(n) + 1;",
            "return called(n) + 1;",
            "return t;",
        ],
    ),
    ("locked", ["synchronized (Family_K.class) { return g(n) + 1; }", "return h(n) + 1;", "return t;"]),
];

/// For Java 8 and later, or for later ones. `None`: there is no compiler.
fn compiled(files: &[(String, String)], release: &str) -> Option<Directory> {
    let directory = Directory::new();
    let paths: Vec<PathBuf> = files.iter().map(|(name, _)| directory.path().join(name)).collect();
    for (path, (_, text)) in paths.iter().zip(files) {
        fs::write(path, text).expect("a file");
    }
    let mut compiler = Command::new("javac");
    compiler
        .args(["--release", release, "-Xlint:-options", "-nowarn", "-d"])
        .arg(directory.path())
        .args(&paths);
    match compiler.status() {
        Ok(status) => assert!(status.success(), "javac"),
        Err(_) => {
            println!("not run: javac is not installed");
            return None;
        }
    }
    Some(directory)
}

fn is_8(java: &Path) -> bool {
    let version = Command::new(java).arg("-version").output().expect("Java");
    String::from_utf8_lossy(&version.stderr).contains("\"1.8.")
}

fn source(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("runtimes").join(name);
    fs::read_to_string(path).expect("the program")
}

fn start(java: &Path, directory: &Directory, arguments: &[&str]) -> Host {
    let mut command = Command::new(java);
    command.arg("-cp").arg(directory.path()).args(arguments);
    start_command(command)
}

/// The place of a method in the order of calls, and its family. `None`: it is none of a family.
fn place(frame: &Frame) -> Option<Result<(usize, u64), String>> {
    let (family, name) = frame.name.strip_prefix("Family_")?.rsplit_once('.')?;
    let wrong = || Err(format!("{} {}:{}", frame.name, frame.file, frame.line));
    let Ok(k) = family.parse::<u64>() else { return None };
    let Some(at) = LINES.iter().position(|(of, _)| *of == name) else {
        let is_other =
            name.starts_with("lambda$") || ["applyAsInt", "called", "many", "some"].contains(&name);
        return Some(wrong()).filter(|_| !is_other && !name.starts_with('<'));
    };
    let (_, [first, last]) = LINES[at];
    let is_right =
        frame.file == format!("Family_{k}.java") && (frame.line == 0 || (first..=last).contains(&frame.line));
    Some(if is_right { Ok((at, k)) } else { wrong() })
}

/// What is wrong with a stack, if the program cannot have it.
fn fault(stack: &Stack, depth: usize) -> Option<String> {
    let (mut family, mut last, mut levels, mut is_gap) = (None, None, 0, false);
    for frame in stack.frames.iter().filter(|frame| frame.kind == "java" || frame.name == GONE) {
        if frame.name == GONE {
            is_gap = true;
            continue;
        }
        let (at, k) = match place(frame) {
            None => continue,
            Some(Err(why)) => return Some(why),
            Some(Ok(found)) => found,
        };
        if *family.get_or_insert(k) != k {
            return Some("two families".into());
        }
        levels += usize::from(at == 0);
        let follows = match last {
            _ if is_gap => last <= Some(at),
            None => at == 0,
            Some(0) => at <= 1,
            Some(last) => at == last + 1,
        };
        if !follows {
            return Some(format!("{} out of order", frame.name));
        }
        (last, is_gap) = (Some(at), false);
    }
    let text = stack.text();
    let is_cut = text.contains("[truncated")
        || text.contains("left out]")
        || text.contains("elided")
        || text.contains(GONE);
    let is_short = last > Some(0) && levels != depth + 1 && !is_cut;
    is_short.then(|| format!("{levels} levels"))
}

/// No stack that the program cannot have; nearly all are complete; all methods are met.
fn expect_known_stacks(how: &str, calls: &str, flags: &[&str]) {
    let least = std::env::var("STACKS_OF_JAVA").map_or(LEAST, |text| text.parse().expect("a number"));
    let (_, [f, g, h]) = CALLS.iter().find(|(name, _)| *name == calls).expect("calls");
    let family = source("Family.java").replace("F\n", &format!("{f}\n")).replace("G\n", &format!("{g}\n"));
    let family = family.replace("H }", &format!("{h} }}"));
    let mut files: Vec<(String, String)> =
        (0..FAMILIES).map(|k| (format!("Family_{k}.java"), family.replace("_K", &format!("_{k}")))).collect();
    let Some(families) = compiled(&files, "8") else { return };
    files = vec![("KnownStacks.java".into(), source("KnownStacks.java"))];
    let Some(program) = compiled(&files, "8") else { return };
    let directory = families.path().to_string_lossy();
    let depth = match how {
        "deep" => 40,
        "deeper" => 1500,
        _ => 0,
    };
    for java in interpreters("java", "JAVAS") {
        let mut host = start(&java, &program, &[flags, &["KnownStacks", how, &directory]].concat());
        let runs =
            |stack: &Stack| stack.text().contains("KnownStacks.run") || stack.text().contains("Family_");
        let is_unnamed = |stack: &Stack| stack.frames.iter().any(|frame| frame.kind == "jit");
        let stacks = record_running(&host, least, |stack| runs(stack) || is_unnamed(stack));
        host.tell("end");
        assert!(host.ended().success());
        let wrong: Vec<String> = stacks
            .iter()
            .filter_map(|stack| fault(stack, depth).map(|why| format!("{why}: {}", stack.text())))
            .collect();
        let is_cut = |stack: &&Stack| stack.text().contains("[truncated");
        let cut: Vec<&Stack> = stacks.iter().filter(is_cut).collect();
        let unnamed: Vec<&Stack> = stacks.iter().filter(|stack| is_unnamed(stack)).collect();
        let gone = stacks.iter().filter(|stack| stack.text().contains(GONE)).count();
        let what = format!("{how}, {calls}, {flags:?}, {}: {} stacks", java.display(), stacks.len());
        wrong.iter().take(3).for_each(|why| println!("{why}"));
        println!(
            "{what}, {} impossible, {gone} with gone code, {} truncated, {} with unnamed code",
            wrong.len(),
            cut.len(),
            unnamed.len()
        );
        assert!(stacks.len() >= least, "{what}");
        // At an instruction that the optimizing compiler has no place for, the next place is shown.
        let is_exact = flags.iter().any(|flag| EXACT_FLAGS.contains(flag));
        let tolerated = if is_exact { 0 } else { stacks.len() / 50 };
        assert!(
            wrong.len() <= tolerated,
            "{what}, {} impossible: {:#?}",
            wrong.len(),
            &wrong[..wrong.len().min(5)]
        );
        assert!(
            gone <= if how == "collected" { stacks.len() / 10 } else { stacks.len() / 100 },
            "{what}: {gone}"
        );
        let some = |of: &[&Stack]| of.iter().take(5).map(|stack| stack.text()).collect::<Vec<_>>();
        assert!(cut.len() <= stacks.len() / 100 + 3, "{what}, {} truncated: {:#?}", cut.len(), some(&cut));
        assert!(
            unnamed.len() <= stacks.len() / 50 + 3,
            "{what}, {} unnamed: {:#?}",
            unnamed.len(),
            some(&unnamed)
        );
        let met: BTreeSet<u64> = stacks
            .iter()
            .flat_map(Stack::java)
            .filter_map(place)
            .filter_map(|found| Some(found.ok()?.1))
            .collect();
        assert!(met.len() > 2, "{what}: {} families", met.len());
        let leaves: BTreeSet<usize> =
            stacks.iter().filter_map(|stack| Some(place(stack.java().last()?)?.ok()?.0)).collect();
        assert!(leaves.contains(&3), "{what}: leaves {leaves:?}");
    }
}

#[test]
fn no_stack_of_methods_that_call_each_other_is_impossible() {
    expect_known_stacks("plain", "direct", &[]);
}

#[test]
fn no_stack_of_interpreted_methods_is_impossible() {
    expect_known_stacks("plain", "direct", &["-Xint"]);
}

#[test]
fn no_stack_of_quickly_compiled_methods_is_impossible() {
    expect_known_stacks("plain", "callbacks", &["-XX:TieredStopAtLevel=1"]);
}

#[test]
fn no_stack_without_inlined_methods_is_impossible() {
    expect_known_stacks("plain", "locked", &["-XX:-Inline"]);
}

#[test]
fn no_stack_with_frame_pointers_is_impossible() {
    expect_known_stacks("plain", "direct", &["-XX:+PreserveFramePointer"]);
}

#[test]
fn no_stack_through_callbacks_is_impossible() {
    expect_known_stacks("plain", "callbacks", &[]);
}

#[test]
fn no_stack_through_reflection_is_impossible() {
    expect_known_stacks("plain", "reflection", &[]);
}

#[test]
fn no_stack_of_methods_that_throw_is_impossible() {
    expect_known_stacks("plain", "exceptions", &[]);
}

#[test]
fn no_stack_below_a_recursion_is_impossible() {
    expect_known_stacks("deep", "direct", &[]);
}

#[test]
fn no_stack_below_a_deep_recursion_is_impossible() {
    expect_known_stacks("deeper", "direct", &[]);
}

#[test]
fn no_stack_of_several_threads_is_impossible() {
    // Java 8 does not know the option, and has one heap of code anyway.
    let flags = ["-XX:+IgnoreUnrecognizedVMOptions", "-XX:-SegmentedCodeCache"];
    expect_known_stacks("threads", "direct", &flags);
}

#[test]
fn no_stack_is_impossible_while_classes_are_loaded_and_dropped() {
    expect_known_stacks("churn", "direct", &["-Xcomp", "-XX:TieredStopAtLevel=1"]);
}

#[test]
fn no_stack_is_impossible_while_classes_are_collected() {
    expect_known_stacks("collected", "direct", &["-XX:+UseSerialGC", "-Xmx64m"]);
}

/// Regression: what lay on top of the stack was taken for the caller (`os::javaTimeNanos`, which
/// had returned), in 15 % of the stacks.
#[test]
fn code_that_is_of_no_method_is_called_by_methods() {
    let Some(program) = compiled(&[("Stubs.java".into(), source("Stubs.java"))], "8") else { return };
    for java in interpreters("java", "JAVAS") {
        // Compiled into `main`, it would be in no stack.
        let alone = ["-XX:CompileCommand=quiet", "-XX:CompileCommand=dontinline,Stubs.sines", "Stubs"];
        let mut host = start(&java, &program, &alone);
        let is_stub = |frame: &Frame| frame.name.starts_with("StubRoutines");
        let has_stub = |stack: &Stack| stack.frames.iter().any(is_stub);
        let stacks = record_running(&host, LEAST, has_stub);
        host.tell("end");
        assert!(host.ended().success());
        for stack in &stacks {
            let at = stack.frames.iter().position(is_stub).expect("a stub");
            let caller = at.checked_sub(1).and_then(|at| stack.frames.get(at));
            let is_method = caller.is_some_and(|frame| frame.kind == "java");
            assert!(is_method, "{}: {}", java.display(), stack.text());
        }
        let of_sines = stacks.iter().filter(|stack| stack.text().contains("Stubs.sines")).count();
        // Java 8 has instructions of the processor for them.
        assert!(
            of_sines > stacks.len() / 10 || is_8(&java),
            "{}: {of_sines} of {}",
            java.display(),
            stacks.len()
        );
    }
}

/// Regression: nine of ten stacks of a program that searches strings ended in the method that does.
#[test]
fn methods_that_move_the_stack_pointer_have_callers() {
    let Some(program) = compiled(&[("Pushes.java".into(), source("Pushes.java"))], "8") else { return };
    for java in interpreters("java", "JAVAS") {
        const METHODS: [&str; 2] = ["Pushes.searches", "Pushes.compresses"];
        let apart = METHODS.map(|method| format!("-XX:CompileCommand=dontinline,{method}"));
        let [first, second] = [&apart[0], &apart[1]];
        let mut host = start(&java, &program, &["-XX:CompileCommand=quiet", first, second, "Pushes", "xyz1"]);
        let of = |method: &'static str| move |stack: &Stack| stack.text().contains(method);
        let stacks = record_running(&host, 2 * LEAST, |stack| METHODS.iter().any(|method| of(method)(stack)));
        host.tell("end");
        assert!(host.ended().success());
        for method in METHODS {
            let all: Vec<&Stack> = stacks.iter().filter(|stack| of(method)(stack)).collect();
            let whole = all.iter().filter(|stack| of("Pushes.main")(stack)).count();
            let what = format!("{}: {method}, {whole} of {}", java.display(), all.len());
            println!("{what}");
            assert!(!all.is_empty() && whole * 20 >= all.len() * 19, "{what}");
        }
    }
}

/// Regression: the frame pointer, which is that of the JVM's caller there, led past all methods, in
/// up to 56 % of the stacks; and methods that had pushed an argument had no callers.
#[test]
fn code_without_a_frame_is_called_by_methods() {
    let source = source("Frameless.java");
    let Some(program) = compiled(&[("Frameless.java".into(), source)], "8") else { return };
    for java in interpreters("java", "JAVAS") {
        for flags in [&["-XX:TieredStopAtLevel=1"][..], &[]] {
            let mut host = start(&java, &program, &[flags, &["Frameless"]].concat());
            let is_of = |stack: &Stack, name: &str| stack.text().contains(name);
            const FRAMELESS: [&str; 3] =
                ["StubRoutines", "C1 Runtime", "exception_handler_for_return_address"];
            let is_frameless = |stack: &Stack| FRAMELESS.iter().any(|name| is_of(stack, name));
            let stacks = record_running(&host, LEAST, is_frameless);
            host.tell("end");
            assert!(host.ended().success());
            let whole = stacks.iter().filter(|stack| is_of(stack, "Frameless.main")).count();
            let what = format!("{} {flags:?}: {whole} of {}", java.display(), stacks.len());
            println!("{what}");
            assert!(stacks.len() >= LEAST && whole * 20 >= stacks.len() * 19, "{what}");
        }
    }
}

/// The stub by which native code calls Java has a frame pointer, and returns to native code.
#[test]
fn methods_that_native_code_calls_again_and_again_have_callers() {
    let Some(program) = compiled(&[("Upcalls.java".into(), source("Upcalls.java"))], "8") else { return };
    for java in interpreters("java", "JAVAS") {
        // Else the JVM makes code for the calls.
        let native = [
            "-XX:+IgnoreUnrecognizedVMOptions",
            "-Dsun.reflect.inflationThreshold=2147483647",
            "-Djdk.reflect.useNativeAccessorOnly=true",
        ];
        let mut host = start(&java, &program, &[&native[..], &["Upcalls"]].concat());
        let stacks = record_running(&host, LEAST, |stack| stack.text().contains("JavaCalls::call"));
        host.tell("end");
        assert!(host.ended().success());
        let whole = stacks.iter().filter(|stack| stack.text().contains("Upcalls.calls")).count();
        let what = format!("{}: {whole} of {}", java.display(), stacks.len());
        println!("{what}");
        assert!(whole * 50 >= stacks.len() * 48, "{what}");
    }
}

/// Regression: up to two thirds of their stacks ended where they return to methods in the heap.
#[test]
fn virtual_threads_that_have_waited_have_callers_and_a_mark_for_methods_in_the_heap() {
    let Some(program) = compiled(&[("Virtual.java".into(), source("Virtual.java"))], "8") else { return };
    for java in interpreters("java", "JAVAS").into_iter().filter(|java| has_virtual_threads(java)) {
        for flags in [&["-Xint"][..], &["-XX:TieredStopAtLevel=1"], &["-XX:+UseZGC"], &[]] {
            let mut host = start(&java, &program, &[flags, &["Virtual"]].concat());
            let stacks = record_running(&host, LEAST, |stack| stack.text().contains("Virtual.work"));
            host.tell("end");
            assert!(host.ended().success());
            let count = |holds: &dyn Fn(&str) -> bool| stacks.iter().filter(|it| holds(&it.text())).count();
            let whole = count(&|text| text.contains("Continuation.run"));
            let marked = count(&|text| text.contains("[methods still in the heap]"));
            let unmarked = count(&|text| !text.contains(".VirtualThread.run") && !text.contains("[methods"));
            let what = format!(
                "{} {flags:?}: {whole} whole, {marked} marked, {unmarked} not, of {}",
                java.display(),
                stacks.len()
            );
            println!("{what}");
            assert!(whole * 100 >= stacks.len() * 98 && marked * 2 > stacks.len(), "{what}");
            assert!(unmarked * 100 <= stacks.len() * 2, "{what}");
        }
    }
}

fn has_virtual_threads(java: &Path) -> bool {
    let version = Command::new(java).arg("-version").output().expect("Java");
    let text = String::from_utf8_lossy(&version.stderr).into_owned();
    let number = text.split('"').nth(1).and_then(|version| version.split('.').next()?.parse().ok());
    let has = number.is_some_and(|number: u32| number >= 21);
    if !has {
        println!("not run: {} has no virtual threads", java.display());
    }
    has
}

#[test]
fn stacks_of_a_blocked_program_are_those_that_java_itself_sees() {
    let Some(program) = compiled(&[("Barriers.java".into(), source("Barriers.java"))], "11") else { return };
    for java in interpreters("java", "JAVAS") {
        if is_8(&java) {
            continue; // It has no StackWalker.
        }
        const FLAGS: [&[&str]; 3] = [&["-Xint"], &["-XX:TieredStopAtLevel=1"], &[]];
        for flags in FLAGS {
            let host = start(&java, &program, &[flags, &["Barriers"]].concat());
            let is_of = |stack: &Stack| stack.text().contains("Barriers.stop");
            at_points_of(host, "java", is_of, |stack, seen, reported| {
                // What waits for standard input, and what has printed.
                let own: Vec<&str> = seen
                    .iter()
                    .map(String::as_str)
                    .skip_while(|method| !method.starts_with("Barriers.stop|"))
                    .collect();
                let reported: Vec<&str> = reported
                    .iter()
                    .copied()
                    .skip_while(|method| !method.starts_with("Barriers.stop|"))
                    .collect();
                let reported: Vec<String> = reported.iter().map(|method| without_address(method)).collect();
                // Where it has stopped, Java says the line of what it has called.
                let rest = |all: &[String]| all.iter().skip(1).cloned().collect::<Vec<_>>();
                let own: Vec<String> = own.iter().map(|method| (*method).to_owned()).collect();
                assert_eq!(rest(&own), rest(&reported), "{} {flags:?}: {}", java.display(), stack.text());
            });
        }
    }
}

/// Of a class that was made while the program runs, Java tells where that is.
fn without_address(method: &str) -> String {
    let Some((class, rest)) = method.split_once("/0x") else { return method.replace("|null|", "||") };
    let name = rest.split_once('.').map_or(rest, |(_, name)| name);
    format!("{class}.{name}").replace("|null|", "||")
}
