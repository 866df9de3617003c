//! `swipr convert`.

use crate::support::*;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Stdio;
use swipr_c_tests::directory::Directory;
use swipr_c_tests::host::wait_until;
use swipr_c_tests::http;
use swipr_formats::FORMATS;

/// A recording of the burner, raw.
pub fn recorded(directory: &Directory) -> String {
    let host = running_burner();
    let file = directory.path().join("app.jsonl").display().to_string();
    // Where others have the CPUs, a recording may have no sample of running code.
    wait_until("a sample of `burn`", || {
        says(["record", &host.pid().to_string(), "-d", "500ms", "--idle", "-o", &file]).well();
        read(Path::new(&file)).contains("\"burn\"")
    });
    host.end();
    file
}

/// Samples by function of the leaf.
pub fn leaves(folded: &str) -> BTreeMap<String, u64> {
    let mut leaves = BTreeMap::new();
    for line in folded.lines() {
        let (stack, count) = line.rsplit_once(' ').expect(line);
        let leaf = stack.rsplit(';').find(|name| !name.starts_with('[')).unwrap_or("none");
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

/// Regression: `late=20` became `late=0`, and 0 was printed for formats that have no losses, too.
#[test]
fn losses_stay_what_they_were_and_what_is_not_known_is_not_0() {
    let directory = Directory::new();
    let path = |name: &str| directory.path().join(name).display().to_string();
    let text = "app 7/7 1.000000000: 10000000 wall-clock:\n\t1000 main+0x0 (/app)\n\n\
                # swipr: threads=1 ticks=9 samples=1 truncated=0 late=20 dropped=3\n";
    std::fs::write(path("late.perf"), text).expect("a file");
    let losses = "truncated=0 late=20 dropped=3";
    for (from, to) in
        [("late.perf", "1.pb.gz"), ("1.pb.gz", "2.jsonl"), ("2.jsonl", "3.perf"), ("3.perf", "4.folded")]
    {
        let said = says(["convert", &path(from), "-o", &path(to)]).well();
        assert!(said.errors.contains("lost 3, late ticks 20"), "{from} -> {to}: {said:?}");
    }
    assert!(read(&directory.path().join("3.perf")).contains(losses));
    let said = says(["convert", &path("4.folded"), "-o", &path("5.perf")]).well();
    assert!(said.errors.contains("losses not known"), "{said:?}");
    let text = read(&directory.path().join("5.perf"));
    assert!(text.contains("uncounted=1") && !text.contains("late=") && !text.contains("ticks="), "{text}");
}

/// Regression: it had "lost 0, late ticks 0" and "in 0.0 s", and an end that was not in the file.
#[test]
fn a_raw_recording_that_was_cut_is_told_as_such_and_stays_cut() {
    let directory = Directory::new();
    let path = |name: &str| directory.path().join(name).display().to_string();
    let whole = r#"{"type":"header","swipr":1,"pid":7,"process_name":"app","executable":"/app","start_ns":1000000000,"interval_ns":10000000,"mode":"wall"}
{"type":"thread","id":0,"tid":7,"name":"app"}
{"type":"stack","id":0,"frames":[{"address":"0x1"}]}
{"type":"sample","time_ns":2500000000,"thread":0,"state":"running","weight_ns":10000000,"stack":0}
"#;
    std::fs::write(path("cut.jsonl"), format!("{whole}{{\"type\":\"sam")).expect("a file");
    for (from, to) in [("cut.jsonl", "a.perf"), ("cut.jsonl", "a.jsonl"), ("a.jsonl", "a.html")] {
        let said = says(["convert", &path(from), "-o", &path(to)]).well();
        let wanted = "1 sample of 1 thread in 1.5 s, the recording is cut: losses not known\n";
        assert!(said.errors.contains(wanted), "{from} -> {to}: {said:?}");
    }
    assert!(read(&directory.path().join("a.perf")).ends_with("# swipr: threads=1 samples=1 uncounted=1\n"));
    assert!(!read(&directory.path().join("a.jsonl")).contains(r#""type":"end""#));
}

#[test]
fn frames_of_a_language_are_written_alone_where_the_recording_tells_them() {
    let directory = Directory::new();
    let path = |name: &str| directory.path().join(name).display().to_string();
    let start = r#"{"type":"header","swipr":1,"pid":7,"process_name":"app","executable":"/app","start_ns":1,"interval_ns":10000000,"mode":"wall"}
{"type":"thread","id":0,"tid":7,"name":"app"}
"#;
    let sample = |stack: u32| {
        format!(
            "{{\"type\":\"sample\",\"time_ns\":1,\"thread\":0,\"state\":\"running\",\"weight_ns\":10000000,\"stack\":{stack}}}\n"
        )
    };
    let frame = |kind: &str, name: &str| {
        format!(r#"{{"address":"0x1",{kind}"functions":[{{"name":"{name}","offset":0}}]}}"#)
    };
    let (leaf, main) = (frame("", "qsort"), frame("", "main"));
    let native = format!("{{\"type\":\"stack\",\"id\":0,\"frames\":[{leaf},{main}]}}\n{}", sample(0));
    let (inner, outer) = (frame(r#""kind":"perl","#, "f"), frame(r#""kind":"perl","#, "g"));
    let perl =
        format!("{{\"type\":\"stack\",\"id\":1,\"frames\":[{leaf},{inner},{outer},{main}]}}\n{}", sample(1));
    std::fs::write(path("native.jsonl"), format!("{start}{native}")).expect("a file");
    std::fs::write(path("a.jsonl"), format!("{start}{native}{perl}")).expect("a file");
    let converted = |from: &str, more: &[&str]| {
        says(["convert", &path(from), "-f", "folded", "-o", "-", "-q"].iter().chain(more))
    };
    let (merged, alone) = ("app;main;g;f;qsort 1\napp;main;qsort 1\n", "app;g;f 1\napp;main;qsort 1\n");
    for file in ["a.jsonl", "a.pb.gz", "a.perf"] {
        if file != "a.jsonl" {
            says(["convert", &path("a.jsonl"), "-o", &path(file), "-q"]).well();
        }
        for more in [&[][..], &["--native"], &["--frames", "merged"]] {
            assert_eq!(converted(file, &[&["--threads"], more].concat()).well().out, merged, "{file}");
        }
        for more in [&["--no-native"][..], &["--frames", "interpreter"]] {
            assert_eq!(converted(file, &[&["--threads"], more].concat()).well().out, alone, "{file}");
        }
        converted(file, &["--frames", "native"]).refuses(1, &["own frames are not in it", "record with"]);
    }
    converted("native.jsonl", &["--frames", "native"]).well();
    converted("native.jsonl", &["--no-native"]).refuses(1, &["no frame in it", "record without"]);
    std::fs::write(path("a.folded"), merged).expect("a file");
    for which in ["interpreter", "native"] {
        converted("a.folded", &["--frames", which]).refuses(1, &["folded stacks do not say", "raw"]);
    }
}

/// Regression: it was native code in a module `perf-7.map`, or in none.
#[test]
fn jit_code_stays_jit_code_and_that_of_perf_is_known() {
    let directory = Directory::new();
    let path = |name: &str| directory.path().join(name).display().to_string();
    let frame = |address: u32, of: &str| format!(r#"{{"address":"{address:#x}",{of}}}"#);
    let functions = |name: &str| format!(r#""functions":[{{"name":"{name}","offset":0}}]"#);
    let frames = [
        frame(9, &format!(r#""kind":"jit",{}"#, functions("fast"))),
        frame(8, r#""kind":"jit""#),
        frame(7, &functions("main")),
    ];
    let raw = format!(
        r#"{{"type":"header","swipr":1,"pid":7,"process_name":"app","executable":"/app","start_ns":1,"interval_ns":10000000,"mode":"wall"}}
{{"type":"thread","id":0,"tid":7,"name":"app"}}
{{"type":"stack","id":0,"frames":[{}]}}
{{"type":"sample","time_ns":1,"thread":0,"state":"running","weight_ns":10000000,"stack":0}}
"#,
        frames.join(",")
    );
    std::fs::write(path("a.jsonl"), raw).expect("a file");
    let perfs = "app 7/7 1.5: 10000000 wall-clock:\n\t9 fast+0x1 (/root/.debug/jit/x/jitted-7-2.so)\n\
                 \t8 [unknown] ([JIT] tid 7)\n\t7 main+0x1 (/app)\n\n";
    std::fs::write(path("perfs.perf"), perfs).expect("a file");
    for file in ["a.perf", "a.pb.gz"] {
        says(["convert", &path("a.jsonl"), "-o", &path(file), "-q"]).well();
    }
    for file in ["a.jsonl", "a.perf", "a.pb.gz", "perfs.perf"] {
        let converted = |which: &str| {
            says(["convert", &path(file), "-f", "folded", "-o", "-", "-q", "--frames", which]).well().out
        };
        assert_eq!(converted("merged"), "main;[JIT];fast 1\n", "{file}");
        assert_eq!(converted("interpreter"), "fast 1\n", "{file}");
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
    let target = "/profile?samples=200&hz=200&mode=cpu&format=raw&symbolize=lazy";
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
    // llvm-symbolizer may know fewer names of the C library, below the program's own code.
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

/// The option did nothing: the names by address of a stripped program counted as names.
#[test]
fn functions_that_were_recorded_by_address_are_named_from_a_folder() {
    let directory = Directory::new();
    let (stripped, symbols) = (directory.path().join("stripped"), directory.path().join("symbols"));
    std::fs::create_dir(&symbols).expect("a folder");
    let mut strip = std::process::Command::new("strip");
    let strip = strip.arg("-o").arg(&stripped).arg(&burner().executable).status();
    assert!(strip.is_ok_and(|status| status.success()), "strip (Debian package binutils)");
    std::fs::copy(&burner().executable, symbols.join("stripped")).expect("a copy");
    let stripped = swipr_c_tests::program::Program { executable: stripped, ..burner().clone() };
    let host = swipr_c_tests::host::Host::start(&stripped);
    let raw = directory.path().join("a.jsonl");
    let target = "/profile?samples=200&hz=200&mode=cpu&format=raw";
    let answer = http::get(&host.socket(), target).and_then(http::Answer::read_all).expect("a recording");
    host.end();
    std::fs::write(&raw, &answer.body).expect("a file");
    let folded = |more: &[&str]| {
        says(["convert", &raw.display().to_string(), "-f", "folded", "-o", "-"].iter().chain(more)).well().out
    };
    assert!(folded(&[]).contains(";stripped+0x"), "{}", folded(&[]));
    let named = folded(&["--symbols", &symbols.display().to_string()]);
    assert!(named.contains("burner_main;first;second;third;burn"), "{named}");
    assert!(!named.contains("stripped+0x"), "{named}");
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
fn what_cannot_be_read_is_told() {
    let said = says(["convert", "--symbols", "/no/such/folder", "/dev/null", "-o", "-"]);
    assert!(said.status == Some(2) && said.errors.contains("there is no such folder"), "{said:?}");
    let directory = Directory::new();
    let file = |name: &str, text: &str| {
        let path = directory.path().join(name);
        std::fs::write(&path, text).expect("a file");
        path.display().to_string()
    };
    says(["convert", "/no/such/file", "-f", "perf"]).refuses(1, &["/no/such/file"]);
    let said = says(["convert", &file("a", "nonsense"), "-f", "perf", "-o", "-"]);
    said.refuses(1, &["cannot read", "; --from says"]);
    assert!(!said.errors.contains("swipr convert"), "{said:?}");
    says(["diff", &file("a", "nonsense"), &file("a", "nonsense")]).refuses(1, &["`swipr convert --from`"]);
    says(["convert", &file("b", "a;b 1\n"), "-f", "gif"]).refuses(2, &["gif"]);
    says(["convert", &file("b", "a;b 1\n"), "--from", "gif", "-f", "perf"]).refuses(2, &["gif", "pprof"]);
    says(["convert", &file("c", "a;b 1\na;c x\n"), "-f", "perf", "-o", "-"]).refuses(1, &["line 2"]);
    // Of these the format is not what is wrong.
    let whole = "next: check that it is the right file, and whole\n";
    let header = r#"{"type":"header","swipr":1,"pid":7,"process_name":"app","executable":"/app","start_ns":1,"interval_ns":10000000,"mode":"wall"}"#;
    for (path, why) in [
        (file("d", ""), "it is empty"),
        (file("e", header), "there is no sample in it"),
        (directory.path().display().to_string(), "Is a directory"),
    ] {
        says(["convert", &path, "-f", "perf", "-o", "-"]).refuses(1, &[why, whole]);
    }
}

/// A page that was recorded before was written over without a word.
#[test]
fn a_file_that_is_there_is_written_over_only_if_it_is_named() {
    let directory = Directory::new();
    let path = |name: &str| directory.path().join(name);
    std::fs::write(path("app.folded"), "main;work 60000000\nmain 50000000\n").expect("a file");
    std::fs::write(path("app.html"), "a page").expect("a file");
    let convert = |more: &[&str]| {
        let mut command = swipr(["convert", "app.folded"]);
        said(command.args(more).current_dir(directory.path()))
    };
    convert(&[]).refuses(2, &["app.html is there already"]);
    assert_eq!(read(&path("app.html")), "a page");
    let said = convert(&["-o", "app.html"]).well();
    assert!(said.errors.contains("wrote app.html: 2 stacks, losses"), "{said:?}");
    assert!(read(&path("app.html")).contains("<html"));
    convert(&["-f", "svg"]).well();
    assert!(read(&path("app.svg")).contains("<svg"));
    std::fs::copy(path("app.folded"), path("app.v1.2.folded")).expect("a copy");
    let mut other = swipr(["convert", "app.v1.2.folded", "-f", "svg"]);
    assert!(other.current_dir(directory.path()).status().expect("the command").success());
    assert!(read(&path("app.v1.2.svg")).contains("<svg"));
}

/// A file that only its owner could read was everybody's when it was written again.
#[test]
fn a_file_that_is_written_over_keeps_its_mode_and_its_owner() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
    let directory = Directory::new();
    let (input, output) = (directory.path().join("app.folded"), directory.path().join("app.perf"));
    std::fs::write(&input, "main;work 6\n").expect("a file");
    let convert = || says(["convert", "-o"].map(Path::new).into_iter().chain([&*output, &input]));
    convert().well();
    for mode in [0o600, 0o640, 0o444] {
        std::fs::set_permissions(&output, std::fs::Permissions::from_mode(mode)).expect("a mode");
        // Other users' files are written by root only.
        let _ = chown(&output, Some(12345), Some(12345));
        let before = std::fs::metadata(&output).expect("the file");
        convert().well();
        let after = std::fs::metadata(&output).expect("the file");
        assert_eq!(after.mode() & 0o777, mode, "{:o}", after.mode());
        assert_eq!((after.uid(), after.gid()), (before.uid(), before.gid()));
        assert_ne!(after.ino(), before.ino(), "it was written in place");
    }
}

/// Ten bytes less were too many: the unfinished file's name was longer.
#[test]
fn a_files_name_may_be_as_long_as_the_file_system_allows() {
    let directory = Directory::new();
    let input = directory.path().join("app.folded");
    std::fs::write(&input, "main;work 6\n").expect("a file");
    for name in ["n".repeat(250), "\u{20ac}".repeat(83)] {
        let output = directory.path().join(format!("{name}.perf"));
        says(["convert", "-o"].map(Path::new).into_iter().chain([&*output, &input])).well();
        assert!(read(&output).contains("work"), "{name}");
    }
}

/// Files of a megabyte took all memory there was, and the command was killed.
#[test]
fn what_unpacks_to_hundreds_of_times_its_size_takes_little_memory_or_is_refused() {
    let directory = Directory::new();
    let path = |name: &str| directory.path().join(name).display().to_string();
    let packs = |made: &str, name: &str| {
        let made = std::process::Command::new("sh")
            .args(["-c", &format!("{made} | gzip -1 > {}", path(name))])
            .status();
        assert!(made.is_ok_and(|status| status.success()), "{name}");
    };
    // 100 MB of long lines: whole, or as samples in memory, they are more than the limit below.
    let stack = format!("main;{}", "f".repeat(200));
    packs(&format!("yes '{stack} 1' | head -n 500000"), "equal.folded.gz");
    packs("head -c 270000000 /dev/zero", "zeros.gz");
    let within = |kib: u32, arguments: &[&str]| {
        let limit = format!("ulimit -v {kib}; exec \"$0\" \"$@\"");
        said(
            std::process::Command::new("sh")
                .args(["-c", &limit, env!("CARGO_BIN_EXE_swipr")])
                .args(arguments),
        )
    };
    let equal = path("equal.folded.gz");
    let said = within(90_000, &["convert", &equal, "-f", "folded", "-o", "-"]).well();
    assert_eq!(said.out, format!("{stack} 500000\n"));
    within(90_000, &["convert", &equal, "-o", &path("equal.perf")]).well();
    within(90_000, &["diff", &equal, &equal]).well();
    let zeros = path("zeros.gz");
    for arguments in [
        &["convert", &zeros, "-f", "svg", "-o", "-"][..],
        &["diff", &zeros, &zeros],
        &["view", &zeros, "--no-open"],
    ] {
        within(1_000_000, arguments)
            .refuses(1, &["cannot read", "it unpacks to more than 256 MiB", "gunzip"]);
    }
}

/// Wall and CPU, the process's name and its id, and when it was: they went, and files' names came
/// in their place.
#[test]
fn process_mode_and_time_stay_from_format_to_format() {
    let directory = Directory::new();
    let path = |name: &str| directory.path().join(name).display().to_string();
    let host = running_burner();
    let pid = host.pid();
    for mode in ["cpu", "wall"] {
        let file = |suffix: &str| path(&format!("{mode}.{suffix}"));
        says(["record", &pid.to_string(), "-d", "300ms", "--mode", mode, "-o", &file("jsonl")]).well();
        for suffix in ["perf", "pb.gz"] {
            says(["convert", &file("jsonl"), "-o", &file(suffix)]).well();
        }
        let raw = read(Path::new(&file("jsonl")));
        let line = |line: Option<&str>| -> serde_json::Value {
            serde_json::from_str(line.expect("a line")).expect("JSON")
        };
        let start_ns = line(raw.lines().next())["start_ns"].as_u64().expect("a time");
        let duration_ns = line(raw.lines().last())["duration_ns"].as_u64().expect("a time");
        for from in ["jsonl", "perf", "pb.gz"] {
            let json = says(["convert", &file(from), "-f", "json", "-o", "-", "-q"]).well().out;
            let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
            assert_eq!((&json["pid"], &json["mode"]), (&pid.into(), &mode.into()), "{from}");
            let name = json["process_name"].as_str().expect("a name");
            assert!(name.starts_with("no_frame_point"), "{from}: {name}");
            // perf's text has the times of samples only.
            let end_ns = if from == "perf" { start_ns + duration_ns } else { start_ns };
            let when = json["start_ns"].as_u64().expect("a time");
            assert!((start_ns..=end_ns).contains(&when), "{from}: {when} {start_ns} {end_ns}");
            let page = says(["convert", &file(from), "-f", "svg", "-o", "-", "-q"]).well().out;
            assert!(page.contains(&format!(" ({pid})</title>")), "{from}");
        }
    }
    host.end();
}

/// Sums have no order in time: the samples of a profile were shown one after the other.
#[test]
fn no_times_are_made_up_where_a_recording_has_none() {
    let directory = Directory::new();
    let path = |name: &str| directory.path().join(name).display().to_string();
    let raw = recorded(&directory);
    for name in ["app.folded", "app.pb.gz"] {
        says(["convert", &raw, "-o", &path(name)]).well();
        let out = |format: &str| says(["convert", &path(name), "-f", format, "-o", "-", "-q"]).well().out;
        let json: serde_json::Value = serde_json::from_str(&out("json")).expect("JSON");
        let samples = json["samples"].as_array().expect("samples");
        assert!(samples.iter().all(|sample| sample["time_ns"] == 0), "{name}");
        assert!(out("html").contains("\"still\":true"), "{name}");
        let firefox: serde_json::Value = serde_json::from_str(&out("firefox")).expect("JSON");
        for thread in firefox["threads"].as_array().expect("threads") {
            let times = thread["samples"]["time"].as_array().expect("times");
            assert!(times.iter().all(|time| time.as_f64() == Some(0.0)), "{name}");
            assert_eq!(thread["markers"]["length"], 0, "{name}");
        }
    }
    assert!(!says(["convert", &raw, "-f", "html", "-o", "-", "-q"]).well().out.contains("\"still\":true"));
}

#[test]
fn a_folded_file_of_one_long_line_is_recognised() {
    let directory = Directory::new();
    let path = directory.path().join("long");
    let line = format!("{}leaf 7\n", "a_function_with_a_long_name;".repeat(1000));
    std::fs::write(&path, &line).expect("a file");
    let said = says(["convert", &path.display().to_string(), "-f", "folded", "-o", "-", "-q"]).well();
    assert_eq!(said.out, line);
}

/// Regression: such names, of JavaScript's private methods, made a comment of perf's of the file.
#[test]
fn a_folded_file_whose_first_name_begins_with_a_number_sign_is_recognised() {
    let directory = Directory::new();
    let path = directory.path().join("private");
    std::fs::write(&path, "#foo;b 5\n").expect("a file");
    let said = says(["convert", &path.display().to_string(), "-f", "folded", "-o", "-", "-q"]).well();
    assert_eq!(said.out, "#foo;b 5\n");
}

/// Regression: nothing was said of them.
#[test]
fn options_that_a_format_has_no_use_for_are_told_and_they_alone() {
    let directory = Directory::new();
    let file = directory.path().join("in.folded");
    std::fs::write(&file, "main(int);a;b;c;d 5\n").expect("a file");
    let file = file.display().to_string();
    for format in swipr_formats::FORMATS.iter().map(|format| format.name) {
        let convert = |more: &[&str]| {
            let out = directory.path().join("out");
            let arguments = ["convert", &file, "-f", format, "-o"].map(str::to_owned);
            let more = more.iter().map(|text| text.to_string());
            let said = says(arguments.into_iter().chain([out.display().to_string()]).chain(more)).well();
            (std::fs::read(&out).expect("a file"), said.errors)
        };
        let (plain, said) = convert(&[]);
        assert!(!said.contains("no use"), "{said}");
        for option in [["--names", "raw"], ["--weight", "ns"], ["--max-depth", "2"], ["--title", "x y"]] {
            let (bytes, said) = convert(&option);
            let is_told = said.contains(&format!("swipr: {format} has no use for {}\n", option[0]));
            assert_eq!(is_told, bytes == plain, "{format} {option:?}: {said}");
        }
    }
}

/// A recording of a C++ function, without its name.
fn mangled_recording(directory: &Directory) -> String {
    let source = directory.path().join("zoo.cc");
    let text = "namespace zoo { __attribute__((noinline)) int sorted(int n) { __asm__ volatile(\"\"); return n + 1; } }\n\
                int main(int c, char **) { return zoo::sorted(c) > 100; }\n";
    std::fs::write(&source, text).expect("a file");
    let program = directory.path().join("zoo");
    let made = std::process::Command::new("c++")
        .args(["-O1", "-g", "-no-pie", "-o"])
        .arg(&program)
        .arg(&source)
        .status();
    assert!(made.is_ok_and(|status| status.success()));
    let symbols = std::process::Command::new("nm").arg(&program).output().expect("nm");
    let symbols = String::from_utf8(symbols.stdout).expect("text");
    let line = symbols.lines().find(|line| line.ends_with("_ZN3zoo6sortedEi")).expect("the function");
    let address = u64::from_str_radix(line.split(' ').next().expect("an address"), 16).expect("hexadecimal");
    let program = program.display();
    let raw = directory.path().join("zoo.jsonl");
    let text = format!(
        r#"{{"type":"header","swipr":1,"pid":7,"process_name":"zoo","executable":"{program}","start_ns":5,"interval_ns":10,"mode":"cpu"}}
{{"type":"module","id":0,"path":"{program}","start":"0x400000","end":"0x500000","file_offset":"0x0","base":"0x400000","build_id":""}}
{{"type":"thread","id":0,"tid":7,"name":"zoo"}}
{{"type":"stack","id":0,"frames":[{{"address":"{address:#x}","module":0}}]}}
{{"type":"sample","time_ns":6,"thread":0,"state":"running","weight_ns":10,"stack":0}}
"#
    );
    std::fs::write(&raw, text).expect("a file");
    raw.display().to_string()
}

/// The same program's, as swift-profile-recorder writes it, into `zoo.samples`.
fn recorders_lines(directory: &Directory) {
    let raw: Vec<serde_json::Value> = read(&directory.path().join("zoo.jsonl"))
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    let address = raw[3]["frames"][0]["address"].as_str().expect("an address");
    let program = raw[1]["path"].as_str().expect("a path");
    let text = format!(
        r#"[SWIPR] VERS {{"version":1}}
[SWIPR] CONF {{"currentTimeSeconds":1700000000,"currentTimeNanoseconds":5,"microSecondsBetweenSamples":100000,"sampleCount":1,}}
[SWIPR] VMAP {{"path":"{program}","architecture":"x86_64","fileMappedAddress":"0x0","segmentStartAddress":"0x400000","segmentEndAddress":"0x500000"}}
[SWIPR] SMPL {{"pid": 7, "tid": 7, "name": "zoo", "timeSec": 1700000000, "timeNSec": 7}}
[SWIPR] STCK {{"ip":"{address}", "sp":"0x1"}}
[SWIPR] STCK {{"ip":"{address}", "sp":"0x1"}}
[SWIPR] DONE
"#
    );
    std::fs::write(directory.path().join("zoo.samples"), text).expect("a file");
}

#[test]
fn linkers_names_can_be_had_of_every_input() {
    let directory = Directory::new();
    let raw = mangled_recording(&directory);
    let path = |name: &str| directory.path().join(name).display().to_string();
    let folded = |from: &str, more: &[&str]| {
        let arguments = ["convert", from, "-f", "folded", "-o", "-"];
        says(arguments.iter().chain(more)).well()
    };
    let has_llvm = std::process::Command::new("llvm-symbolizer").arg("--version").output().is_ok();
    let llvm: &[&str] = &["--symbolizer", "llvm-symbolizer"];
    for more in [Some(&[][..]), Some(llvm).filter(|_| has_llvm)].into_iter().flatten() {
        let with = |names: &str| folded(&raw, &[more, &["--names", names]].concat()).out;
        assert!(with("mangled").contains("_ZN3zoo6sortedEi "), "{more:?}: {}", with("mangled"));
        assert!(with("safe").contains("zoo::sorted "), "{more:?}: {}", with("safe"));
        assert!(with("raw").contains("zoo::sorted(int) "), "{more:?}: {}", with("raw"));
    }
    // What was written with linkers' names has readable ones, too.
    for (name, names) in
        [("a.pb.gz", "safe"), ("b.pb.gz", "mangled"), ("c.perf", "mangled"), ("d.folded", "mangled")]
    {
        says(["convert", &raw, "-o", &path(name), "--names", names]).well();
        assert!(folded(&path(name), &["--names", "mangled"]).out.contains("_ZN3zoo6sortedEi "), "{name}");
        assert!(folded(&path(name), &["--names", "raw"]).out.contains("zoo::sorted(int) "), "{name}");
        assert!(folded(&path(name), &[]).out.contains("zoo::sorted "), "{name}");
    }
    // Both kinds of names are in a raw recording, and swift-profile-recorder's lines get theirs.
    says(["convert", &raw, "-o", &path("named.jsonl"), "--names", "safe"]).well();
    assert!(read(&directory.path().join("named.jsonl")).contains("_ZN3zoo6sortedEi"));
    recorders_lines(&directory);
    for (name, more) in [("named.jsonl", &["--symbolizer", "fake"][..]), ("zoo.samples", &[])] {
        let with = |names: &str| folded(&path(name), &[more, &["--names", names]].concat()).out;
        assert!(with("mangled").contains("_ZN3zoo6sortedEi "), "{name}: {}", with("mangled"));
        assert!(with("raw").contains("zoo::sorted(int) "), "{name}: {}", with("raw"));
        assert!(with("safe").contains("zoo::sorted "), "{name}: {}", with("safe"));
    }
    // What has readable names only says so.
    says(["convert", &raw, "-o", &path("e.perf")]).well();
    let said = folded(&path("e.perf"), &["--names", "mangled"]);
    assert!(
        said.out.contains("zoo::sorted ") && said.errors.contains("the file has no mangled name"),
        "{said:?}"
    );
}

#[test]
fn json_is_firefoxs_and_the_dump_has_an_end_of_its_own() {
    let directory = Directory::new();
    let path = |name: &str| directory.path().join(name).display().to_string();
    std::fs::write(path("a.folded"), "main;parse 10\n").expect("a file");
    for (name, part) in [
        ("profile.json", "preprocessedProfileVersion"),
        ("a.firefox.json", "preprocessedProfileVersion"),
        ("a.dump.json", "\"samples\":["),
    ] {
        says(["convert", &path("a.folded"), "-o", &path(name)]).well();
        assert!(read(&directory.path().join(name)).contains(part), "{name}");
    }
    assert!(!read(&directory.path().join("a.dump.json")).contains("preprocessedProfileVersion"));
}

/// Regression: it was removed, and with it a recording of hours.
#[test]
fn what_was_written_before_the_file_system_was_full_stays() {
    let directory = Directory::new();
    let [input, output] = ["a.folded", "a.perf"].map(|name| directory.path().join(name));
    std::fs::write(&input, "main;work 9000\n").expect("a file");
    let script = "trap '' XFSZ; ulimit -f 1500; exec \"$0\" convert \"$1\" -o \"$2\"";
    let mut command = std::process::Command::new("sh");
    let said = said(command.args(["-c", script, env!("CARGO_BIN_EXE_swipr")]).args([&input, &output]));
    let part = directory.path().join("a.perf.part");
    let next = format!("next: what was recorded before is in {}", part.display());
    assert!(said.status == Some(1) && said.errors.contains(&next), "{said:?}");
    assert!(!output.exists() && std::fs::metadata(&part).is_ok_and(|part| part.len() > 0));
    let read = says(["convert", &part.display().to_string(), "-f", "folded", "-o", "-"]).well();
    assert!(read.out.contains("main;work "), "{read:?}");
}
