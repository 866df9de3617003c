//! Names, lines and inlined frames of small programs with a known truth, and of
//! the same programs stripped, split and compressed.

mod support;

use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use support::{C, compile, directory, expect, expect_c, frames, function, installed, key, line_of};
use support::{resolve_all, run, section, source};
use swipr_symbols::demangle::Names;
use swipr_symbols::identity::FileIdentity;
use swipr_symbols::symbolizer::{Budget, Detail, Lookup, ObjectKey, Symbolizer};

const CPP: &str = "names.cpp";
const RUST: &str = "modules.rs";
const WITH_BUILD_ID: [&str; 3] = ["-g", "-O2", "-Wl,--build-id"];

#[test]
fn inlined_c_functions_come_innermost_first_with_their_lines() {
    let program = compile(&directory("inlined_c"), C, &["-g", "-O2"]);
    expect_c(&program);
    let answers = resolve_all(&key(&program), function(&program, |name| name == "outer"));
    let file = answers[0].last().unwrap().file.clone().unwrap();
    assert!(file.ends_with("tests/programs/inlines.c"), "{file}");
    for (offset, answer) in answers.iter().enumerate() {
        let (outer, inlined) = answer.split_last().unwrap();
        assert_eq!((&*outer.name, outer.offset, outer.inlined), ("outer", offset as u64, false));
        assert!(inlined.iter().all(|symbol| symbol.inlined && symbol.offset == 0));
    }
}

/// Regression: what a clang object had between two parts of a gcc object, which lists its
/// addresses, had neither lines nor inlined functions.
#[test]
fn code_between_two_parts_of_another_unit_has_its_own_lines() {
    let directory = directory("between");
    let path = |name: &str| directory.join(name).to_str().unwrap().to_owned();
    let around = "static volatile int own; int usual(void) { return own; } __attribute__((cold)) int rare(void) { return own + 1; }";
    std::fs::write(path("around.c"), around).unwrap();
    let (listed, unlisted, program) = (path("around.o"), path("unlisted.o"), path("program"));
    run("gcc", &["-g", "-O2", "-c", &path("around.c"), "-o", &listed]);
    run("gcc", &["-g", "-O2", "-c", source(C).to_str().unwrap(), "-o", &unlisted]);
    // As clang and rustc do.
    run("objcopy", &["--remove-section=.debug_aranges", "--remove-section=.rela.debug_aranges", &unlisted]);
    run("gcc", &[&unlisted, &listed, "-o", &program]);
    let program = Path::new(&program);
    let [before, between, behind] =
        ["rare", "outer", "usual"].map(|name| function(program, |it| it == name).0);
    assert!(before < between && between < behind, "the linker has put them in another order");
    expect_c(program);
}

/// Regression: `_start`, stubs and assembly had the name and the hundreds of inlined functions of
/// one that the linker had thrown away: it lets those begin at 0.
#[test]
fn low_code_is_not_that_of_a_function_which_the_linker_left_out() {
    let directory = directory("left_out");
    let path = |name: &str| directory.join(name).to_str().unwrap().to_owned();
    let (file, program) = (path("left_out.c"), path("program"));
    let left_out = "void left_out(void) { __asm__ volatile(\".skip 8192, 0x90\"); }";
    let kept =
        "__attribute__((noinline)) int kept(int n) { return n * 3; }\nint main(int n) { return kept(n); }";
    std::fs::write(&file, [left_out, kept].join("\n")).unwrap();
    let flags = ["-O2", "-ffunction-sections", "-Wl,--gc-sections", &file, "-o", &program];
    for compiler in installed(["gcc", "clang"]) {
        for version in ["-gdwarf-2", "-gdwarf-4", "-gdwarf-5"] {
            run(compiler, &[&flags[..], &["-g", version]].concat());
            let program = Path::new(&program);
            expect(program, "kept", &[("kept", 2, false)]);
            let (start, _) = function(program, |name| name == "_start");
            for answer in resolve_all(&key(program), (start, 16)) {
                assert_eq!(frames(&answer), [("_start", None, false)], "{compiler} {version}");
            }
        }
    }
}

#[test]
fn code_at_address_0_has_lines() {
    let directory = directory("at_0");
    let (file, library) = (directory.join("source.c"), directory.join("library"));
    std::fs::write(&file, "int first(int n) { return n * 3; }").unwrap();
    let (file, out) = (file.to_str().unwrap(), library.to_str().unwrap());
    for compiler in installed(["gcc", "clang"]) {
        run(compiler, &["-g", "-O2", "-shared", "-nostdlib", "-Wl,-Ttext=0", file, "-o", out]);
        assert_eq!(function(&library, |name| name == "first").0, 0);
        expect(&library, "first", &[("first", 1, false)]);
    }
}

/// What is inlined into a function is kept once it is looked up again.
#[test]
fn an_address_has_the_same_inlined_functions_however_often_its_function_was_asked_for() {
    let directory = directory("asked_often");
    for (source, name) in [(C, "outer"), (CPP, "main"), (RUST, "generic")] {
        let program =
            compile(&directory, source, if source == RUST { &["-g", "-O"] } else { &["-g", "-O2"] });
        let (start, size) = function(&program, |found| found.contains(name));
        let often = resolve_all(&key(&program), (start, size));
        assert!(often.iter().any(|answer| answer.len() > 1), "{often:?}");
        for (address, often) in (start..start + size).zip(&often) {
            let once = Symbolizer::new(Budget::default()).resolve(&key(&program), address, Lookup::Pc);
            assert_eq!(&once, often, "{source} {address:#x}");
        }
    }
}

#[test]
fn every_version_of_dwarf_and_compressed_sections_give_the_same_frames() {
    let directory = directory("dwarf_versions");
    for flags in [
        &["-g", "-O2", "-gdwarf-4"][..],
        &["-g", "-O2", "-gdwarf-5"],
        &["-g", "-O2", "-gz=zlib"],
        &["-g", "-O2", "-gz=zlib-gnu"],
        &["-g", "-O2", "-gdwarf-5", "-fdebug-types-section"],
        &["-g", "-O2", "-no-pie"],
    ] {
        expect_c(&compile(&directory, C, flags));
    }
}

#[test]
fn names_alone_come_without_lines_and_inlined_functions() {
    let program = compile(&directory("names_alone"), C, &["-g", "-O2"]);
    let (outer, _) = function(&program, |name| name == "outer");
    let mut symbolizer = Symbolizer::new(Budget::default());
    let key = key(&program);
    for _ in 0..2 {
        let names = symbolizer.resolve_with(&key, outer, Lookup::Pc, Detail::Names);
        assert_eq!(frames(&names), [("outer", None, false)]);
        let all = symbolizer.resolve(&key, outer, Lookup::Pc);
        assert!(all.len() > 1 && all[0].line.is_some(), "{all:?}");
    }
}

#[test]
fn cpp_names_are_readable() {
    let program = compile(&directory("cpp"), CPP, &["-g", "-O2"]);
    let line = |mark| line_of(CPP, mark);
    expect(&program, "unnamed", &[("(anonymous namespace)::unnamed(int)", line("unnamed"), false)]);
    expect(&program, "store", &[("shapes::Box<long>::store(long)", line("store"), false)]);
    expect(&program, "plain", &[("plain(int)", line("plain"), false)]);
    expect(&program, "with_c_name", &[("with_c_name", line("with_c_name"), false)]);
    let twice = ("shapes::Box<long>::twice(long)", Some(line("twice")), true);
    let answers = resolve_all(&key(&program), function(&program, |name| name == "main"));
    assert!(answers.iter().any(|answer| frames(answer)[0] == twice && answer.len() == 2));
    let (start, _) = function(&program, |name| name.contains("unnamed"));
    let mut symbolizer = Symbolizer::new(Budget::default());
    let readable = symbolizer.resolve(&key(&program), start, Lookup::Pc);
    let mangled = readable[0].mangled.clone().unwrap();
    symbolizer.set_names(Names::Raw);
    let raw = symbolizer.resolve(&key(&program), start, Lookup::Pc);
    assert_eq!((&raw[0].name, &raw[0].mangled), (&mangled, &None));
    assert!(mangled.starts_with("_ZN12_GLOBAL__N_1"), "{mangled}");
}

#[test]
fn rust_names_are_readable_in_both_manglings() {
    let directory = directory("rust");
    let line = |mark| line_of(RUST, mark);
    for flags in [&["-g", "-O"][..], &["-g", "-O", "-C", "symbol-mangling-version=v0"]] {
        let program = compile(&directory, RUST, flags);
        let answers = resolve_all(&key(&program), function(&program, |name| name.contains("generic")));
        // The one mangling names the generic's type, the other does not.
        let is_chain = |answer: &[(&str, Option<u32>, bool)]| match answer {
            [(inlined, at, true), (generic, from, false)] => {
                *inlined == "modules::inner::inlined"
                    && generic.starts_with("modules::inner::generic")
                    && (*at, *from) == (Some(line("inlined")), Some(line("generic")))
            }
            _ => false,
        };
        assert!(answers.iter().any(|answer| is_chain(&frames(answer))), "{answers:#?}");
        for answer in resolve_all(&key(&program), function(&program, |name| name.contains("speak"))) {
            let outer = answer.last().unwrap();
            assert_eq!(&*outer.name, "<modules::Dog as modules::Speak>::speak");
            assert_ne!(outer.mangled, None);
        }
    }
}

/// Splits the debug information off into `NAME.debug` and strips the program.
fn split(program: &Path) -> std::path::PathBuf {
    let debug = program.with_extension("debug");
    let (from, to) = (program.to_str().unwrap(), debug.to_str().unwrap());
    run("objcopy", &["--only-keep-debug", from, to]);
    run("strip", &["--strip-all", from]);
    run("objcopy", &[&format!("--add-gnu-debuglink={to}"), from]);
    debug
}

#[test]
fn a_separate_debug_file_gives_what_was_stripped() {
    let directory = directory("separate");
    let program = compile(&directory, C, &WITH_BUILD_ID);
    let (outer, hidden) =
        (function(&program, |name| name == "outer"), function(&program, |name| name == "hidden"));
    let before = (resolve_all(&key(&program), outer), resolve_all(&key(&program), hidden));
    assert_eq!(&*before.1[0][0].name, "hidden");
    let debug = split(&program);
    assert_eq!((resolve_all(&key(&program), outer), resolve_all(&key(&program), hidden)), before);
    // The second place.
    let hidden_directory = directory.join(".debug");
    std::fs::create_dir(&hidden_directory).unwrap();
    std::fs::rename(&debug, hidden_directory.join(debug.file_name().unwrap())).unwrap();
    assert_eq!(resolve_all(&key(&program), hidden), before.1);
}

#[test]
fn a_debug_file_with_another_crc_or_build_id_is_refused() {
    let program = compile(&directory("wrong_crc"), C, &WITH_BUILD_ID);
    let (hidden, _) = function(&program, |name| name == "hidden");
    let debug = split(&program);
    let mut bytes = std::fs::read(&debug).unwrap();
    bytes.push(0);
    std::fs::write(&debug, &bytes).unwrap();
    let mut symbolizer = Symbolizer::new(Budget::default());
    let without_name = format!("inlines-c+{hidden:#x}");
    assert_eq!(*symbolizer.resolve(&key(&program), hidden, Lookup::Pc)[0].name, without_name);
    assert_eq!(symbolizer.stats().refused_files, 1);
    // A debug file of another build: its own build id is wrong.
    let other = compile(&directory("wrong_build_id"), C, &[&WITH_BUILD_ID[..], &["-DOTHER", "-O1"]].concat());
    std::fs::copy(&other, &debug).unwrap();
    let mut symbolizer = Symbolizer::new(Budget::default());
    assert_eq!(*symbolizer.resolve(&key(&program), hidden, Lookup::Pc)[0].name, without_name);
    assert_eq!(symbolizer.stats().refused_files, 1);
}

#[test]
fn a_file_that_was_replaced_is_refused() {
    let directory = directory("replaced");
    let program = compile(&directory, C, &WITH_BUILD_ID);
    let old = key(&program);
    let (hidden, _) = function(&program, |name| name == "hidden");
    compile(&directory, C, &[&WITH_BUILD_ID[..], &["-O0"]].concat());
    assert_ne!(key(&program).build_id, old.build_id);
    let mut symbolizer = Symbolizer::new(Budget::default());
    assert!(symbolizer.resolve(&old, hidden, Lookup::Pc).is_empty());
    assert_eq!(symbolizer.stats().refused_files, 1);
    let gone = ObjectKey { path: "/no/such/file".into(), ..old };
    assert!(symbolizer.resolve(&gone, hidden, Lookup::Pc).is_empty());
    assert_eq!(symbolizer.stats().unreadable_files, 1);
}

/// Regression: a library without a build id was replaced while programs ran it, and their samples
/// had the names of the new one.
#[test]
fn a_file_without_build_id_that_was_replaced_is_refused_and_found_by_its_link() {
    let directory = directory("replaced_without_build_id");
    let program = compile(&directory, C, &["-g", "-O2", "-Wl,--build-id=none"]);
    let (hidden, _) = function(&program, |name| name == "hidden");
    let metadata = std::fs::metadata(&program).unwrap();
    let identity = FileIdentity::new(metadata.dev(), metadata.ino());
    let old = ObjectKey { file: Some(identity), ..key(&program) };
    let fresh = || Symbolizer::new(Budget::default());
    assert_eq!(&*fresh().resolve(&old, hidden, Lookup::Pc)[0].name, "hidden");
    let mapped = std::fs::File::open(&program).unwrap();
    std::fs::remove_file(&program).unwrap();
    assert_eq!(compile(&directory, C, &["-g", "-O0", "-Wl,--build-id=none"]), program);
    let mut symbolizer = fresh();
    assert!(symbolizer.resolve(&old, hidden, Lookup::Pc).is_empty());
    assert_eq!(symbolizer.stats().refused_files, 1);
    let new = std::fs::metadata(&program).unwrap();
    let new = ObjectKey { file: Some(FileIdentity::new(new.dev(), new.ino())), ..key(&program) };
    let (hidden_now, _) = function(&program, |name| name == "hidden");
    assert_eq!(&*symbolizer.resolve(&new, hidden_now, Lookup::Pc)[0].name, "hidden");
    let link = format!("/proc/self/fd/{}", mapped.as_raw_fd());
    let linked = ObjectKey { links: [link.as_str().into()].into(), ..old };
    assert_eq!(&*fresh().resolve(&linked, hidden, Lookup::Pc)[0].name, "hidden");
}

#[test]
fn without_dwarf_the_symbol_table_gives_names_and_offsets() {
    let program = compile(&directory("without_dwarf"), C, &["-O2"]);
    let (hidden, size) = function(&program, |name| name == "hidden");
    for (offset, answer) in resolve_all(&key(&program), (hidden, size)).iter().enumerate() {
        assert_eq!((&*answer[0].name, answer[0].offset, answer[0].line), ("hidden", offset as u64, None));
    }
    // A symbol of the same type, but not of code.
    let (data, _) = function(&program, |name| name == "data_start");
    assert!(resolve_all(&key(&program), (data, 1))[0].is_empty());
}

#[test]
fn without_a_symbol_table_dwarf_gives_names_and_unwind_information_the_offsets() {
    let program = compile(&directory("without_symtab"), C, &["-g", "-O2"]);
    let (hidden, size) = function(&program, |name| name == "hidden");
    let out = program.with_extension("bare");
    let flags = ["--strip-all", "--keep-section=.debug_*", program.to_str().unwrap(), out.to_str().unwrap()];
    run("objcopy", &flags);
    for (offset, answer) in resolve_all(&key(&out), (hidden, size)).iter().enumerate() {
        let outer = answer.last().unwrap();
        assert_eq!((&*outer.name, outer.offset), ("hidden", offset as u64));
        assert!(outer.line.is_some());
    }
}

#[test]
fn a_function_without_a_size_ends_where_its_unwind_information_does() {
    let directory = directory("without_size");
    let library = compile(&directory, "asm.c", &["-O2", "-shared", "-fPIC"]);
    let (start, size) = function(&library, |name| name == "without_size");
    assert_eq!(size, 0);
    let answers = resolve_all(&key(&library), (start, 32));
    let names: Vec<_> = answers.iter().map(|answer| answer.first().map(|symbol| &*symbol.name)).collect();
    assert_eq!(names, [[Some("without_size"); 16], [None; 16]].concat());
}

/// Regression: behind 16 labels with sizes, a loop of an interpreter in assembly had no name.
#[test]
fn code_behind_many_labels_has_the_name_of_the_function_around_them() {
    let library = compile(&directory("nested"), "nested.c", &["-O2", "-shared", "-fPIC"]);
    let name_at = |label: &str| {
        let answers = resolve_all(&key(&library), (function(&library, |name| name == label).0, 1));
        answers[0].first().map(|symbol| symbol.name.to_string())
    };
    assert_eq!(name_at("label_7").as_deref(), Some("label_7"));
    assert_eq!(name_at("behind_labels").as_deref(), Some("inner"));
    assert_eq!(name_at("behind_inner").as_deref(), Some("outer"));
    assert_eq!(name_at("behind_outer").as_deref(), Some("behind_outer"));
}

/// Three quarters of ffmpeg's CPU time had the name of a label in libx264's assembly, up to 135 KB
/// before the code.
#[test]
fn a_label_in_assembly_ends_where_code_is_called_and_after_4_kib() {
    let directory = directory("labels");
    let library = compile(&directory, "labels.c", &["-O2", "-shared", "-fPIC"]);
    let address = |label: &str| function(&library, |name| name == label).0;
    let (label, called, taken, far) =
        (address("label"), address("called"), address("taken"), address("far_away"));
    run("strip", &["--strip-all", library.to_str().unwrap()]);
    let name_of = |at: u64| {
        let answers = resolve_all(&key(&library), (at, 1));
        answers[0].first().map(|symbol| (symbol.name.to_string(), symbol.offset))
    };
    let unnamed = |start: u64, offset| Some((format!("labels-c+{start:#x}"), offset));
    assert_eq!(name_of(label + 300), Some(("label".into(), 300)));
    assert_eq!(name_of(called - 1), Some(("label".into(), called - 1 - label)));
    assert_eq!(name_of(called), unnamed(called, 0));
    if cfg!(target_arch = "x86_64") {
        assert_eq!(name_of(taken - 1), unnamed(called, taken - 1 - called));
        assert_eq!(name_of(taken + 4095), unnamed(taken, 4095));
        assert_eq!(name_of(taken + 4096), None);
    }
    assert_eq!(name_of(far + 4095), Some(("far_away".into(), 4095)));
    assert_eq!(name_of(far + 4096), None);
}

/// What Debian's stripped programs do in their own functions was all one function in a flame graph.
#[test]
fn functions_of_a_stripped_file_are_told_apart_by_where_they_begin() {
    let directory = directory("stripped");
    let library = compile(&directory, C, &["-O2", "-shared", "-fPIC"]);
    let (hidden, size) = function(&library, |name| name == "hidden");
    let (outer, _) = function(&library, |name| name == "outer");
    run("strip", &["--strip-all", library.to_str().unwrap()]);
    for (offset, answer) in resolve_all(&key(&library), (hidden, size)).iter().enumerate() {
        let [symbol] = &**answer else { panic!("{answer:?}") };
        assert_eq!((&*symbol.name, symbol.offset), (&*format!("inlines-c+{hidden:#x}"), offset as u64));
        assert_eq!((&symbol.mangled, symbol.line), (&None, None));
    }
    assert_eq!(&*resolve_all(&key(&library), (outer, 1))[0][0].name, "outer");
    // Regression: without section headers (sstrip, llvm-strip --strip-sections) they had no names.
    let whole = key(&library);
    let mut bytes = std::fs::read(&library).unwrap();
    bytes[0x28..0x30].fill(0);
    bytes[0x3c..0x40].fill(0);
    std::fs::write(&library, bytes).unwrap();
    let names = |(start, size): (u64, u64)| {
        let answers = resolve_all(&ObjectKey::at(&whole.path, &whole.build_id), (start, size));
        answers.iter().map(|answer| answer[0].name.to_string()).collect::<Vec<_>>()
    };
    assert!(names((hidden, size)).iter().all(|name| *name == format!("inlines-c+{hidden:#x}")));
    assert_eq!(names((outer, 1)), ["outer"]);
}

/// Regression: assemblers take names of any bytes, and those that are not UTF-8 were left out.
#[test]
fn a_name_that_is_not_utf_8_is_shown_as_far_as_it_is() {
    let program = compile(&directory("not_utf_8"), C, &["-O2"]);
    let hidden = function(&program, |name| name == "hidden");
    let mut bytes = std::fs::read(&program).unwrap();
    let at = bytes.windows(8).position(|it| it == b"\0hidden\0").unwrap();
    bytes[at + 4] = 0xe9;
    std::fs::write(&program, bytes).unwrap();
    assert_eq!(&*resolve_all(&key(&program), hidden)[0][0].name, "hid\u{fffd}en");
}

#[test]
fn plt_stubs_have_the_names_of_their_functions() {
    if !cfg!(target_arch = "x86_64") {
        return;
    }
    let directory = directory("plt");
    let split_stubs = ["-O2", "-fcf-protection=full", "-Wl,-z,ibtplt"];
    for (flags, name, expected) in [
        (&["-O2", "-Wl,-z,lazy"][..], ".plt", &["puts@plt", "exit@plt"][..]),
        (&["-O2"], ".plt.got", &["__cxa_finalize@plt"]),
        (&split_stubs, ".plt.sec", &["puts@plt", "exit@plt"]),
        (&split_stubs, ".plt", &["puts@plt", "exit@plt"]),
    ] {
        let program = compile(&directory, C, flags);
        run("strip", &[program.to_str().unwrap()]);
        let (start, size) = section(&program, name);
        let answers = resolve_all(&key(&program), (start, size));
        for function in expected {
            let of_it: Vec<_> =
                answers.iter().filter(|answer| frames(answer) == [(*function, None, false)]).collect();
            assert!(matches!(of_it.len(), 8 | 16), "{function} in {name}: {answers:?}");
            let offsets = of_it.iter().map(|answer| answer[0].offset);
            assert!(offsets.eq(0..of_it.len() as u64));
        }
    }
}

#[test]
fn a_return_address_belongs_to_the_call_before_it() {
    let program = compile(&directory("return_address"), C, &["-g", "-O2"]);
    let (leave, size) = function(&program, |name| name == "leave");
    let mut symbolizer = Symbolizer::new(Budget::default());
    let called = symbolizer.resolve(&key(&program), leave + size, Lookup::ReturnAddress);
    let [called] = &*called else { panic!("{called:?}") };
    let found = (&*called.name, called.offset, called.line);
    assert_eq!(found, ("leave", size, Some(line_of(C, "leave"))));
    let next = symbolizer.resolve(&key(&program), leave + size, Lookup::Pc);
    assert_ne!(next.first().map(|symbol| &*symbol.name), Some("leave"));
}

/// Regression: makecontext(3) lets a coroutine return to the first byte of __start_context, and the
/// padding before that has no name.
#[test]
fn a_return_address_behind_padding_belongs_to_the_function_that_begins_there() {
    let library = compile(&directory("return_to_start"), "nested.c", &["-O2", "-shared", "-fPIC"]);
    let start = |name: &str| function(&library, |it| it == name).0;
    let mut symbolizer = Symbolizer::new(Budget::default());
    let mut name_at = |address: u64| {
        let found = symbolizer.resolve(&key(&library), address, Lookup::ReturnAddress);
        found.first().map(|symbol| (symbol.name.to_string(), symbol.offset))
    };
    assert_eq!(name_at(start("behind_padding")), Some(("behind_padding".into(), 0)));
    assert_eq!(name_at(start("behind_padding") - 1), None);
    let inner = (start("inner"), start("behind_inner"));
    assert_eq!(name_at(inner.1), Some(("inner".into(), inner.1 - inner.0)));
}
