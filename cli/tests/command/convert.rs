//! `swipr convert`.

use crate::support::*;
use std::collections::BTreeMap;
use std::process::Stdio;
use swipr_c_tests::directory::Directory;
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
