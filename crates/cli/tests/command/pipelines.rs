//! The pipelines of swift-profile-recorder's documentation, run as they stand there but for the
//! addresses.
//!
//! `stackcollapse-perf.pl` is inferno's port of it here; `swift demangle`, which changes names
//! only, is left out.

use crate::push::store;
use crate::support::*;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;
use swipr_c_tests::directory::Directory;
use swipr_properties::readers::folded::parse_folded;
use swipr_properties::readers::{perf, pprof};

const SAMPLES: usize = 50;

/// What a shell makes of a line.
fn shell(line: &str, input: &[u8]) -> Vec<u8> {
    let mut child = Command::new("sh")
        .args(["-c", line])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("a shell");
    let mut to = child.stdin.take().expect("a pipe");
    let input = input.to_vec();
    let writer = std::thread::spawn(move || to.write_all(&input));
    let output = child.wait_with_output().expect("its end");
    let _ = writer.join();
    assert!(output.status.success(), "{line}: {output:?}");
    output.stdout
}

/// What its users send, with what they may add.
fn asked(socket: &Path, route: &str, more: &str) -> Vec<u8> {
    let socket = socket.display();
    let body = format!(r#"{{"numberOfSamples":{SAMPLES},"timeInterval":"10 ms"{more}}}"#);
    shell(&format!("curl -s -d '{body}' --unix-socket {socket} http://unix{route} | c++filt -n"), b"")
}

/// Lines as `stackcollapse-perf.pl` makes them.
fn collapsed(text: &[u8]) -> String {
    let lines = swipr_properties::readers::folded::collapse(std::str::from_utf8(text).expect("text"));
    lines.iter().map(|(stack, count)| format!("{} {count}\n", stack.join(";"))).collect()
}

fn sum(folded: &str) -> u64 {
    parse_folded(folded).iter().map(|(_, count)| count).sum()
}

/// An error was reported, and the program's status lost its meaning.
#[test]
fn a_program_keeps_its_status_and_its_silence_where_nobody_reads_its_profile_any_more() {
    let directory = Directory::new();
    let program = short_program(&directory, "hot", &[]);
    let command = format!(
        "SWIPR_LIBRARY={} {} run -r 999 -f perf -o - -- {}",
        swipr_c_tests::agent::library().display(),
        env!("CARGO_BIN_EXE_swipr"),
        program.display()
    );
    let line = format!("{{ {command}; echo \"status $?\" >&2; }} | head -n 1");
    let said = said(Command::new("sh").args(["-c", &line])).well();
    assert_eq!((said.out.lines().count(), said.errors.as_str()), (1, "status 5\n"), "{said:?}");
}

#[test]
fn a_binary_profile_is_not_written_to_a_terminal() {
    let words = format!("{} run -f pprof -o - -- echo ran", env!("CARGO_BIN_EXE_swipr"));
    let mut terminal = Command::new("script");
    terminal.args(["-qec", &words, "/dev/null"]).env("SWIPR_LIBRARY", swipr_c_tests::agent::library());
    let said = said(&mut terminal);
    assert_eq!(said.status, Some(2), "{said:?}");
    assert!(said.out.contains("next: choose a file with -o FILE") && !said.out.contains("ran"), "{said:?}");
}

/// More samples than that are none that were taken: one thread burns and two wait, and ticks that
/// came late on a busy machine have their samples as well. Nanoseconds in their place are a million
/// times as many.
const AT_MOST: u64 = SAMPLES as u64 * 3 * 10;

#[test]
fn what_counts_lines_of_perf_text_counts_samples_and_not_nanoseconds() {
    let host = running_burner();
    for route in ["", "/sample", "/samples"] {
        let text = asked(&host.socket(), route, "");
        let samples = perf::read(std::str::from_utf8(&text).expect("text"));
        let count = samples.len() as u64;
        assert!(count >= SAMPLES as u64 && count <= AT_MOST, "{count}");
        let folded = collapsed(&text);
        assert_eq!(sum(&folded), count, "{folded}");
        assert!(folded.lines().any(|line| line.contains("burner_main;first;second;third;burn")), "{folded}");
    }
    host.end();
}

/// Pyroscope multiplies counts by 1 / sampleRate: nanoseconds in their place were 10^8 times too
/// much.
#[test]
fn pyroscopes_recipe_sends_the_samples_that_were_taken() {
    let (url, requests) = store(&["200 OK"]);
    let host = running_burner();
    let text = asked(&host.socket(), "", "");
    host.end();
    let taken = perf::read(std::str::from_utf8(&text).expect("text")).len() as u64;
    let line =
        format!("cut -d';' -f2- | curl -s --data-binary @- '{url}/ingest?name=app&sampleRate=100&from=1'");
    shell(&line, collapsed(&text).as_bytes());
    let sent = requests.recv_timeout(Duration::from_secs(60)).expect("a request");
    let folded = String::from_utf8(sent.body).expect("text");
    assert_eq!(sum(&folded), taken, "{folded}");
    assert!(taken <= AT_MOST && !folded.contains("-T"), "{folded}");
}

/// A link to the command by the name of its converter.
fn sample_conv(directory: &Directory) -> String {
    let link = directory.path().join("swipr-sample-conv");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_swipr"), &link).expect("a link");
    link.display().to_string()
}

#[test]
fn raw_samples_become_perf_text_folded_stacks_and_a_profile_by_the_converters_name() {
    let directory = Directory::new();
    let converter = sample_conv(&directory);
    let host = running_burner();
    let raw = asked(&host.socket(), "/sample", r#","format":"raw","symbolizer":"fake""#);
    host.end();
    let taken =
        raw.split(|&byte| byte == b'\n').filter(|line| line.starts_with(br#"{"type":"sample""#)).count();
    let text = shell(&converter, &raw);
    assert_eq!(sum(&collapsed(&text)), taken as u64);
    assert!(collapsed(&text).contains("burner_main;first;second;third;burn"));
    let folded = shell(&format!("{converter} --format collapsed"), &raw);
    assert_eq!(sum(&String::from_utf8(folded).expect("text")), taken as u64);
    let file = directory.path().join("samples.pb.gz").display().to_string();
    shell(&format!("{converter} --format pprof --use-native-symbolizer true --output {file} -"), &raw);
    let profile = pprof::decode(&std::fs::read(&file).expect("a file"));
    assert_eq!(profile.sample.iter().map(|sample| sample.value[0]).sum::<i64>(), taken as i64);
    let unnamed = shell(&format!("{converter} --use-fake-symbolizer true"), &raw);
    assert!(!collapsed(&unnamed).contains("burner_main"));
}

/// Its own lines, as it writes them: a comma at the end of an object, the first frame twice.
#[test]
fn its_own_raw_samples_are_read_by_the_converters_name() {
    let directory = Directory::new();
    let converter = sample_conv(&directory);
    let program = &burner().executable.display().to_string();
    let map = format!(
        r#"{{"path":"{program}","architecture":"x86_64","segmentSlide":"0x1000","segmentStartAddress":"0x1000","segmentEndAddress":"0x900000"}}"#
    );
    let mut raw = format!(
        "[SWIPR] VERS {{\"version\":1}}\n[SWIPR] CONF {{\"currentTimeSeconds\":1700000000,\"currentTimeNanoseconds\":5,\"microSecondsBetweenSamples\":100000,\"sampleCount\":3,}}\n[SWIPR] VMAP {map}\n"
    );
    for second in 0..3 {
        raw.push_str(&format!(
            "[SWIPR] SMPL {{\"pid\": 77, \"tid\": 78, \"name\": \"work\", \"timeSec\": 170000000{second}, \"timeNSec\": 7}}\n[SWIPR] STCK {{\"ip\":\"0x2001\", \"sp\":\"0x1\"}}\n[SWIPR] STCK {{\"ip\":\"0x2001\", \"sp\":\"0x1\"}}\n[SWIPR] DONE\n"
        ));
    }
    let file = directory.path().join("samples");
    std::fs::write(&file, &raw).expect("a file");
    let text = shell(&format!("{converter} < {}", file.display()), b"");
    let text = String::from_utf8(text).expect("text");
    let heads: Vec<&str> = text.lines().filter(|line| line.ends_with(":    swipr")).collect();
    assert_eq!(heads.len(), 3, "{text}");
    assert!(heads[0].starts_with("work-T78     77/78     1700000000.000000007:"), "{text}");
    assert_eq!(sum(&collapsed(text.as_bytes())), 3);
    let said = said(Command::new(&converter).arg("--help"));
    assert!(said.well().out.contains("swift-profile-recorder"));
}

/// Regression: what reads perf text without periods took CPU time for that of the clock.
#[test]
fn recordings_of_cpu_time_are_not_written_without_periods() {
    let directory = Directory::new();
    let converter = sample_conv(&directory);
    let host = running_burner();
    let file = directory.path().join("cpu.jsonl").display().to_string();
    says(["record", &host.pid().to_string(), "-d", "1", "-o", &file]).well();
    host.end();
    said(Command::new(&converter).arg(&file)).refuses(1, &["CPU time", "`swipr convert FILE -o app.perf`"]);
    let folded = said(Command::new(&converter).args(["--format", "collapsed", &file])).well();
    assert!(sum(&folded.out) > 1_000_000, "nanoseconds: {folded:?}");
}
