//! Names, lines and inlined frames that are in other files than the program: split DWARF, what
//! `dwz` took out of several files, the symbols in `.gnu_debugdata`. Each file is made here, and
//! its names are gone without it.

mod support;

use std::path::{Path, PathBuf};
use support::{C, compile, directory, expect_c, function, installed, key, resolve_all, run};
use swipr_symbols::symbolizer::{Budget, Lookup, Symbolizer};

const SPLIT: [&str; 3] = ["-g", "-O2", "-gsplit-dwarf"];

/// How many functions there are at some address of `outer` at most: 3 where inlined ones are known.
fn depth(program: &Path, outer: (u64, u64)) -> usize {
    resolve_all(&key(program), outer).iter().map(|answer| answer.len()).max().unwrap()
}

fn outer(program: &Path) -> (u64, u64) {
    function(program, |name| name == "outer")
}

fn files_with_ending(directory: &Path, ending: &str) -> Vec<PathBuf> {
    let files = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    files.filter(|path| path.extension().is_some_and(|it| it == ending)).collect()
}

#[test]
fn split_dwarf_is_read_from_its_objects() {
    for version in ["-gdwarf-4", "-gdwarf-5"] {
        let directory = directory(&format!("split{version}"));
        let program = compile(&directory, C, &[&SPLIT[..], &[version]].concat());
        expect_c(&program);
        let [object] = &*files_with_ending(&directory, "dwo") else { panic!("not one .dwo file") };
        std::fs::remove_file(object).unwrap();
        assert_eq!(depth(&program, outer(&program)), 1);
    }
}

/// Regression: they are in the sections of the functions' unit, or before it, and the file was
/// refused.
#[test]
fn split_dwarf_with_units_of_types_is_read() {
    for compiler in installed(["g++", "clang++"]) {
        for version in ["-gdwarf-4", "-gdwarf-5"] {
            let directory = directory(&format!("types{compiler}{version}"));
            let program = directory.join("program");
            let (source, out) = (support::source("types.cpp"), program.to_str().unwrap());
            let object = directory.join("types.o");
            let object = object.to_str().unwrap();
            let files = [source.to_str().unwrap(), "-c", "-o", object, "-fdebug-types-section"];
            run(compiler, &[&SPLIT[..], &files, &[version]].concat());
            run(compiler, &[object, "-o", out]);
            assert_eq!(depth(&program, outer(&program)), 2, "{compiler} {version}");
        }
    }
}

/// Regression: after optimization at link time one file has the units of all sources. All but the
/// first lost their inlined functions.
#[test]
fn split_dwarf_of_several_sources_in_one_file_is_read() {
    if installed(["clang", "llvm-link"]).count() < 2 {
        return;
    }
    for version in ["-gdwarf-4", "-gdwarf-5"] {
        let directory = directory(&format!("several{version}"));
        let path = |name: &str| directory.join(name).to_str().unwrap().to_owned();
        std::fs::write(path("other.c"), "int before; int other(int n) { return n * before; }").unwrap();
        let (other, own, both, object) = (path("other.bc"), path("own.bc"), path("both.bc"), path("both.o"));
        for (source, out) in [(path("other.c"), &other), (support::source(C).display().to_string(), &own)] {
            run("clang", &[&SPLIT[..], &[version, "-emit-llvm", "-c", &source, "-o", out]].concat());
        }
        run("llvm-link", &[&other, &own, "-o", &both]);
        run("clang", &["-gsplit-dwarf", "-c", &both, "-o", &object]);
        run("clang", &[&object, "-o", &path("program")]);
        assert_eq!(files_with_ending(&directory, "dwo").len(), 1);
        assert_eq!(depth(&directory.join("program"), outer(&directory.join("program"))), 3, "{version}");
    }
}

#[test]
fn split_dwarf_is_read_from_a_package() {
    for (compiler, version, packer) in [("gcc", "-gdwarf-4", "dwp"), ("clang", "-gdwarf-5", "llvm-dwp")] {
        if installed([compiler, packer]).count() < 2 {
            continue;
        }
        let directory = directory(&format!("package{version}"));
        let (source, program) = (support::source(C), directory.join("program"));
        let flags =
            [&SPLIT[..], &[version, source.to_str().unwrap(), "-o", program.to_str().unwrap()]].concat();
        // The place of the objects is remembered as it was when they were made.
        let status = std::process::Command::new(compiler).args(&flags).current_dir(&directory).status();
        assert!(status.unwrap().success());
        expect_c(&program);
        let package = directory.join("program.dwp");
        run(packer, &["-e", program.to_str().unwrap(), "-o", package.to_str().unwrap()]);
        for object in files_with_ending(&directory, "dwo") {
            std::fs::remove_file(object).unwrap();
        }
        expect_c(&program);
        // Regression: packages of libraries, which are loaded by a link, were not found.
        let link = directory.join("link");
        std::os::unix::fs::symlink(&program, &link).unwrap();
        expect_c(&link);
        std::fs::remove_file(package).unwrap();
        assert_eq!(depth(&program, outer(&program)), 1);
    }
}

/// The source was recompiled without linking the program again: lines and functions would be those
/// of another build.
#[test]
fn split_dwarf_of_another_build_is_refused() {
    for version in ["-gdwarf-4", "-gdwarf-5"] {
        let directory = directory(&format!("other_build{version}"));
        let program = compile(&directory, C, &[&SPLIT[..], &[version]].concat());
        let [object] = &*files_with_ending(&directory, "dwo") else { panic!("not one .dwo file") };
        let kept = directory.join("kept");
        std::fs::rename(&program, &kept).unwrap();
        compile(&directory, C, &[&SPLIT[..], &[version, "-DOTHER", "-O1"]].concat());
        assert!(object.exists());
        let (start, _) = outer(&kept);
        let mut symbolizer = Symbolizer::new(Budget::default());
        let answer = symbolizer.resolve(&key(&kept), start, Lookup::Pc);
        assert_eq!((answer.len(), &*answer[0].name), (1, "outer"));
        assert_eq!(symbolizer.stats().refused_files, 1);
    }
}

#[test]
fn what_dwz_took_out_of_several_files_is_read_from_the_one_they_share() {
    if installed(["dwz"]).count() < 1 {
        return;
    }
    let directory = directory("dwz");
    let program = compile(&directory, C, &["-g", "-O2", "-Wl,--build-id"]);
    let other = directory.join("other");
    let before = resolve_all(&key(&program), outer(&program));
    let whole = std::fs::metadata(&program).unwrap().len();
    let compile_other = || {
        let source = support::source(C);
        let files = [source.to_str().unwrap(), "-o", other.to_str().unwrap()];
        run("gcc", &[&files[..], &["-g", "-O2", "-Wl,--build-id", "-DOTHER"]].concat());
    };
    compile_other();
    let common = directory.join("common.debug");
    let [program_name, other_name, common_name] =
        [&program, &other, &common].map(|path| path.to_str().unwrap());
    run("dwz", &["-m", common_name, "-M", common_name, program_name, other_name]);
    assert!(std::fs::metadata(&program).unwrap().len() < whole);
    assert_eq!(resolve_all(&key(&program), outer(&program)), before);
    expect_c(&program);
    // Of another build: its id is not the one that is asked for.
    let refused = |with: &str| {
        std::fs::copy(with, &common).unwrap();
        let mut symbolizer = Symbolizer::new(Budget::default());
        symbolizer.resolve(&key(&program), outer(&program).0, Lookup::Pc);
        symbolizer.stats().refused_files
    };
    assert_eq!(refused(other_name), 1);
    std::fs::remove_file(&common).unwrap();
    assert_ne!(resolve_all(&key(&program), outer(&program)), before);
    // The name may be relative to the file that has it.
    let program = compile(&directory, C, &["-g", "-O2", "-Wl,--build-id"]);
    compile_other();
    run("dwz", &["-m", common_name, "-M", "./common.debug", program_name, other_name]);
    assert_eq!(resolve_all(&key(&program), outer(&program)), before);
}

#[test]
fn symbols_are_read_from_a_compressed_file_within_the_program() {
    let directory = directory("mini_debug_file");
    let program = compile(&directory, C, &["-O2"]);
    let hidden = function(&program, |name| name == "hidden");
    let [name, mini] =
        [program.clone(), directory.join("mini")].map(|path| path.to_str().unwrap().to_owned());
    run("objcopy", &["--only-keep-debug", &name, &mini]);
    run("strip", &["--strip-all", &name]);
    assert_eq!(&*resolve_all(&key(&program), hidden)[0][0].name, format!("inlines-c+{:#x}", hidden.0));
    run("xz", &["--keep", &mini]);
    run("objcopy", &[&format!("--add-section=.gnu_debugdata={mini}.xz"), &name]);
    for (offset, answer) in resolve_all(&key(&program), hidden).iter().enumerate() {
        assert_eq!((&*answer[0].name, answer[0].offset), ("hidden", offset as u64));
    }
}

#[test]
#[cfg(feature = "zstd")]
fn debug_information_is_read_that_is_compressed_with_zstd() {
    let program = compile(&directory("zstd"), C, &["-g", "-O2"]);
    run("objcopy", &["--compress-debug-sections=zstd", program.to_str().unwrap()]);
    expect_c(&program);
}
