//! `swipr run` of programs that the library cannot be loaded into.

use crate::support::*;
use std::path::Path;
use std::process::Command;
use swipr_c_tests::directory::Directory;
use swipr_c_tests::program;

/// Prints LD_PRELOAD; its status is 0.
const SAYS_ITS_PRELOAD: &str = "
    #include <stdio.h>
    #include <stdlib.h>
    int main(void)
    {
        const char *preload = getenv(\"LD_PRELOAD\");
        puts(preload ? preload : \"nothing\");
        return 0;
    }
";

/// An executable file for 32-bit x86 that ends with status 0: exit(2), by number.
fn program_of_32_bits() -> Vec<u8> {
    let mut file = b"\x7fELF\x01\x01\x01".to_vec();
    file.resize(16, 0);
    let words = |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
    // ET_EXEC and EM_386 in one word, then version, entry, program headers, section headers, flags.
    file.extend(words(&[3 << 16 | 2, 1, 0x0804_8054, 52, 0, 0]));
    file.extend([52, 0, 32, 0, 1, 0, 0, 0, 0, 0, 0, 0]);
    // PT_LOAD: the whole file, to be read and executed.
    file.extend(words(&[1, 0, 0x0804_8000, 0x0804_8000, 0x60, 0x60, 5, 0x1000]));
    file.extend(b"\xb8\x01\0\0\0\x31\xdb\xcd\x80\x90\x90\x90");
    file
}

fn make_executable(file: &std::path::Path) {
    assert!(Command::new("chmod").arg("+x").arg(file).status().is_ok_and(|status| status.success()));
}

#[test]
fn programs_that_cannot_be_preloaded_run_with_a_warning_that_says_why() {
    let directory = Directory::new();
    let run = |program: &std::path::Path| says(["run".as_ref(), program.as_os_str()]);
    let fixed = short_program(&directory, "static", &["-static", "-DSECONDS=0"]);
    let said = run(&fixed);
    said.refuses(5, &["warning: ", "is a static program"]);
    assert_eq!(said.errors.matches("next: ").count(), 1, "{said:?}");
    // What is missing of its CPU time cannot be had at a higher rate.
    let burns = short_program(&directory, "burns", &["-static", "-DSECONDS=0.5"]);
    assert_eq!(run(&burns).errors.matches("next: ").count(), 1);
    let script = directory.path().join("script");
    let line = format!("#! {} -x\n", fixed.display());
    std::fs::write(&script, line).expect("a script");
    make_executable(&script);
    run(&script).refuses(5, &["is a static program"]);
    let setuid = short_program(&directory, "setuid", &["-DSECONDS=0"]);
    let own = std::os::unix::fs::MetadataExt::uid(&std::fs::metadata(&setuid).expect("the program"));
    if std::os::unix::fs::chown(&setuid, Some(own + 1), None).is_ok() {
        assert!(Command::new("chmod").arg("4755").arg(&setuid).status().is_ok_and(|status| status.success()));
        let said = run(&setuid);
        assert!(said.errors.contains("is setuid to user"), "{said:?}");
    }
    let foreign = short_program(&directory, "foreign", &["-DSECONDS=0"]);
    let mut bytes = std::fs::read(&foreign).expect("the program");
    bytes[18] = 243; // e_machine: RISC-V
    std::fs::write(&foreign, bytes).expect("the program");
    let said = run(&foreign);
    assert!(said.errors.contains("is for riscv"), "{said:?}");
    let source = directory.path().join("says.c");
    std::fs::write(&source, SAYS_ITS_PRELOAD).expect("a C file");
    let sanitized = directory.path().join("sanitized");
    let compiler =
        Command::new("cc").arg("-fsanitize=thread").arg(&source).arg("-o").arg(&sanitized).output();
    match compiler.is_ok_and(|done| done.status.success()) {
        true => {
            let said = run(&sanitized);
            assert!(said.errors.contains("is built with ThreadSanitizer"), "{said:?}");
        }
        false => eprintln!("not tried: this compiler has no ThreadSanitizer"),
    }
}

/// Its parent is preloaded, and the variable is inherited.
fn musl_child(program: &Path) {
    if std::env::var_os("SWIPR_TEST_LIBRARY").is_none() {
        return eprintln!("not tried: only the library in the packages loads under musl (packages/build)");
    }
    let script = format!("{}; exit 3", program.display());
    for options in [&["run"][..], &["run", "-s"]] {
        let output = ["-f", "folded", "-o", "/dev/null", "--", "sh", "-c", &script];
        let said = says([options, &output].concat());
        assert_eq!(said.status, Some(3), "{said:?}");
        assert!(said.out.contains("libswipr"), "{said:?}");
        assert!(!said.errors.contains("Error"), "{said:?}");
    }
}

/// A program of musl's ended with 127 before its first instruction: its loader cannot load what is
/// made for glibc.
#[test]
fn programs_that_cannot_be_preloaded_are_started_as_they_are_and_keep_their_status() {
    let directory = Directory::new();
    let source = directory.path().join("says.c");
    std::fs::write(&source, SAYS_ITS_PRELOAD).expect("a C file");
    let runs_as_it_is = |name: &str, reason: &str, out: &str| {
        let program = directory.path().join(name).display().to_string();
        let said = says(["run", "-s", "--", &program]);
        said.refuses(0, &["warning: ", reason]);
        assert_eq!(said.out, out, "{said:?}");
        says(["run", "--require-samples", "--", &program]).refuses(125, &[reason]);
    };
    program::compile(&source, &directory.path().join("static"), &["-static".into()], &[]);
    runs_as_it_is("static", "is a static program", "nothing\n");
    let of_32_bits = directory.path().join("of_32_bits");
    std::fs::write(&of_32_bits, program_of_32_bits()).expect("the program");
    make_executable(&of_32_bits);
    match Command::new(&of_32_bits).status() {
        Ok(_) => runs_as_it_is("of_32_bits", "is for x86 (32 bit)", ""),
        Err(error) => eprintln!("not tried: this kernel starts no program of 32 bits: {error}"),
    }
    let musl = directory.path().join("musl");
    match Command::new("musl-gcc").arg(&source).arg("-o").arg(&musl).status() {
        Ok(status) => {
            assert!(status.success());
            runs_as_it_is("musl", "uses musl's C library", "nothing\n");
            musl_child(&musl);
        }
        Err(_) => eprintln!("not tried: there is no musl-gcc (Debian package musl-tools)"),
    }
    let bionic = short_program(&directory, "bionic", &["-Wl,--dynamic-linker=/system/bin/linker64"]);
    let said = says(["run".as_ref(), bionic.as_os_str()]);
    assert!(said.errors.contains("is loaded by /system/bin/linker64"), "{said:?}");
}
