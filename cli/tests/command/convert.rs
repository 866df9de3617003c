//! `swipr convert`.

use crate::support::*;
use std::collections::BTreeMap;
use std::process::Stdio;
use swipr_c_tests::directory::Directory;
use swipr_c_tests::http;
use swipr_formats::FORMATS;

/// A recording of the burner, raw.
fn recorded(directory: &Directory) -> String {
    let host = running_burner();
    let file = directory.path().join("app.jsonl").display().to_string();
    says(["record", &host.pid().to_string(), "-d", "500ms", "--idle", "-o", &file]).well();
    host.end();
    file
}

/// Samples by function of the leaf.
fn leaves(folded: &str) -> BTreeMap<String, u64> {
    let mut leaves = BTreeMap::new();
    for line in folded.lines() {
        let (stack, count) = line.rsplit_once(' ').expect(line);
        let leaf = stack.rsplit(';').find(|name| !name.starts_with('[')).expect(line);
        *leaves.entry(leaf.to_owned()).or_default() += count.parse::<u64>().expect(line);
    }
    leaves
}

#[test]
fn a_recording_becomes_every_format_and_those_that_can_be_read_say_the_same() {
    let directory = Directory::new();
    let raw = recorded(&directory);
    let folded = |from: &str| says(["convert", from, "-o", "-", "-f", "folded", "-q"]).well().out;
    let wanted = leaves(&folded(&raw));
    assert!(wanted.contains_key("burn"), "{wanted:?}");
    for format in FORMATS {
        let file =
            directory.path().join(format!("app-{}.{}", format.name, format.suffix)).display().to_string();
        let said = says(["convert", &raw, "-f", format.name, "-o", &file]).well();
        assert!(said.errors.contains("next: "), "{said:?}");
        assert!(std::fs::metadata(&file).is_ok_and(|file| file.len() > 100), "{file}");
        if ["perf", "folded", "pprof", "raw"].contains(&format.name) {
            assert_eq!(leaves(&folded(&file)), wanted, "{}", format.name);
        }
    }
}

/// A recording without names, of a program of which this is the only file.
fn unnamed(directory: &Directory) -> (std::path::PathBuf, String) {
    let program = directory.path().join("elsewhere");
    let copied = std::process::Command::new("cp").arg(&burner().executable).arg(&program).status();
    assert!(copied.is_ok_and(|status| status.success()));
    let host = swipr_c_tests::host::Host::start(&swipr_c_tests::program::Program {
        executable: program.clone(),
        ..burner().clone()
    });
    let target = "/profile?samples=50&hz=200&mode=cpu&format=raw&symbolize=lazy";
    let answer = http::get(&host.socket(), target).and_then(http::Answer::read_all).expect("a recording");
    host.end();
    let raw = directory.path().join("lazy.jsonl");
    std::fs::write(&raw, &answer.body).expect("a file");
    (program, raw.display().to_string())
}

#[test]
fn an_installed_llvm_symbolizer_finds_the_names_that_we_find() {
    let directory = Directory::new();
    let (_, raw) = unnamed(&directory);
    let folded = |more: &[&str]| {
        says(["convert", &raw, "-f", "folded", "-o", "-", "-q"].iter().chain(more)).well().out
    };
    if std::process::Command::new("llvm-symbolizer").arg("--version").output().is_err() {
        eprintln!("not run: there is no llvm-symbolizer");
        return;
    }
    // Below its own code it may be told less of the C library than we find.
    let own = |text: &str| -> Vec<String> {
        let lines = text.lines().filter(|line| line.contains("burner_main"));
        lines.map(|line| line[line.find("burner_main").unwrap_or(0)..].to_owned()).collect()
    };
    let (ours, theirs) = (folded(&[]), folded(&["--symbolizer", "llvm-symbolizer"]));
    assert_eq!(own(&theirs), own(&ours));
    assert!(theirs.contains("burner_main;first;second;third;burn"), "{theirs}");
    let said = says(["convert", &raw, "-f", "folded", "-o", "-", "--symbolizer", "/bin/true"]);
    said.refuses(1, &["cannot use /bin/true", "LLVM 13"]);
}

#[test]
fn frames_without_names_are_named_from_files_and_those_that_are_missing_are_told() {
    let directory = Directory::new();
    let (program, raw) = unnamed(&directory);
    let folded = |more: &[&str]| says(["convert", &raw, "-f", "folded", "-o", "-"].iter().chain(more)).well();
    assert!(folded(&[]).out.contains("burner_main;first;second;third;burn"));
    let symbols = directory.path().join("symbols");
    std::fs::create_dir(&symbols).expect("a folder");
    std::fs::rename(&program, symbols.join("elsewhere")).expect("moved");
    let said = folded(&[]);
    assert!(!said.out.contains("burner_main") && said.errors.contains("next: --symbols DIR"), "{said:?}");
    assert!(said.errors.contains(&program.display().to_string()), "{said:?}");
    let said = folded(&["--symbols", &symbols.display().to_string()]);
    assert!(said.out.contains("burner_main;first;second;third;burn"), "{said:?}");
}

#[test]
fn what_comes_by_standard_input_is_read_and_named_by_from() {
    let text = "main;a 5\nmain;b 7\n";
    for more in [&[][..], &["--from", "folded"]] {
        let mut command = swipr(["convert", "-", "-f", "folded", "-o", "-"]);
        let command = command.args(more).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the command");
        std::io::Write::write_all(&mut child.stdin.take().expect("a pipe"), text.as_bytes())
            .expect("written");
        let said = Said::of(child.wait_with_output().expect("its end")).well();
        assert_eq!(said.out, text);
    }
}

#[test]
fn gos_own_profiles_can_be_read() {
    let go = std::process::Command::new("go").arg("version").output();
    if !go.is_ok_and(|output| output.status.success()) {
        eprintln!("not run: there is no go");
        return;
    }
    let directory = Directory::new();
    let raw = recorded(&directory);
    let path = |name: &str| directory.path().join(name).display().to_string();
    says(["convert", &raw, "-o", &path("ours.pb.gz")]).well();
    // Written anew by Go's own encoder.
    let made = std::process::Command::new("go")
        .args(["tool", "pprof", "-proto", "-output", &path("gos.pb.gz"), &path("ours.pb.gz")])
        .env("HOME", directory.path())
        .output()
        .expect("go");
    assert!(made.status.success(), "{made:?}");
    let folded = |name: &str| says(["convert", &path(name), "-o", "-", "-f", "folded", "-q"]).well().out;
    assert_eq!(leaves(&folded("gos.pb.gz")), leaves(&folded("ours.pb.gz")));
}

#[test]
fn what_cannot_be_read_is_told() {
    let directory = Directory::new();
    let file = |name: &str, text: &str| {
        let path = directory.path().join(name);
        std::fs::write(&path, text).expect("a file");
        path.display().to_string()
    };
    says(["convert", "/no/such/file", "-f", "perf"]).refuses(1, &["/no/such/file"]);
    says(["convert", &file("a", "nonsense"), "-f", "perf", "-o", "-"]).refuses(1, &["cannot read", "--from"]);
    says(["convert", &file("b", "a;b 1\n"), "-f", "gif"]).refuses(2, &["gif"]);
    says(["convert", &file("b", "a;b 1\n"), "--from", "gif", "-f", "perf"]).refuses(2, &["gif", "pprof"]);
    says(["convert", &file("c", "a;b 1\na;c x\n"), "-f", "perf", "-o", "-"]).refuses(1, &["line 2"]);
}
