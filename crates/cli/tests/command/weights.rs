//! What recordings weigh: the same in every format, and what the program used.

use crate::support::*;
use swipr_c_tests::directory::Directory;
use swipr_c_tests::host::Host;
use swipr_c_tests::http;
use swipr_c_tests::program::Program;
use swipr_properties::readers::folded::parse_folded;
use swipr_properties::readers::{perf, pprof, viewers};

/// A thread that has a processor half of the time, and 8 that have the rest.
fn light_threads(directory: &Directory) -> Host {
    let host = Host::start(&Program::compile("light_threads", directory.path()));
    host.socket();
    host
}

fn sum(folded: &str) -> u64 {
    parse_folded(folded).iter().map(|(_, count)| count).sum()
}

/// What the agent may use for a recording, and the process between two looks at its clock.
const SLACK_NS: u64 = 100_000_000;

/// The CPU time of a process, by the kernel's clock.
fn cpu_ns(pid: u32) -> u64 {
    let (mut clock, mut time) = (0, libc::timespec { tv_sec: 0, tv_nsec: 0 });
    // SAFETY: both are on this stack, and the process runs.
    unsafe {
        assert_eq!(libc::clock_getcpuclockid(pid.cast_signed(), &raw mut clock), 0);
        assert_eq!(libc::clock_gettime(clock, &raw mut time), 0);
    }
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The share of stacks with that function.
fn share(folded: &str, function: &str) -> f64 {
    let lines = parse_folded(folded);
    let with: u64 =
        lines.iter().filter(|(stack, _)| stack.iter().any(|name| name == function)).map(|line| line.1).sum();
    with as f64 / sum(folded) as f64
}

#[test]
fn one_recording_weighs_the_same_in_every_format_that_is_made_of_it() {
    let directory = Directory::new();
    let path = |name: &str| directory.path().join(name).display().to_string();
    let host = light_threads(&directory);
    for mode in ["cpu", "wall"] {
        let raw = path(&format!("{mode}.jsonl"));
        says(["record", &host.pid().to_string(), "--mode", mode, "-d", "1s", "-o", &raw]).well();
        let written = read(directory.path().join(format!("{mode}.jsonl")).as_path());
        let samples = written.lines().filter(|line| line.starts_with(r#"{"type":"sample""#));
        let weights: Vec<u64> = samples
            .map(|line| {
                serde_json::from_str::<serde_json::Value>(line).expect("JSON")["weight_ns"]
                    .as_u64()
                    .expect("a number")
            })
            .collect();
        let (count, ns) = (weights.len() as u64, weights.iter().sum::<u64>());
        let made = |from: &str, format: &str, more: &[&str]| {
            let file = path(&format!("made.{format}"));
            says(["convert", from, "-f", format, "-o", &file].iter().chain(more)).well();
            std::fs::read(&file).expect("a file")
        };
        let text = |from: &str, format: &str, more: &[&str]| {
            String::from_utf8(made(from, format, more)).expect("text")
        };
        made(&raw, "perf", &[]);
        made(&raw, "pprof", &[]);
        for from in [raw.clone(), path("made.perf"), path("made.pprof")] {
            let copy = format!("{from}.copy");
            std::fs::copy(&from, &copy).expect("a copy");
            let by_default = if mode == "cpu" { ns } else { count };
            assert_eq!(sum(&text(&copy, "folded", &[])), by_default, "{mode} {from}");
            assert_eq!(sum(&text(&copy, "folded", &["--weight", "ns"])), ns, "{mode} {from}");
            assert_eq!(sum(&text(&copy, "folded", &["--weight", "samples"])), count, "{mode} {from}");
            let profile = pprof::decode(&made(&copy, "pprof", &[]));
            let value =
                |index: usize| profile.sample.iter().map(|sample| sample.value[index]).sum::<i64>() as u64;
            assert_eq!((value(0), value(1)), (count, ns), "{mode} {from}");
            let samples = perf::read(&text(&copy, "perf", &[]));
            assert_eq!(samples.iter().map(|sample| sample.period).sum::<u64>(), ns, "{mode} {from}");
            let of = |all: Vec<viewers::Weighted>| all.iter().map(|each| each.ns).sum::<u64>();
            assert_eq!(of(viewers::firefox(&text(&copy, "firefox", &[]))), ns, "{mode} {from}");
            assert_eq!(of(viewers::speedscope(&text(&copy, "speedscope", &[]))), ns, "{mode} {from}");
            assert_eq!(of(viewers::html(&text(&copy, "html", &[]))), ns, "{mode} {from}");
            assert_eq!(viewers::svg(&text(&copy, "svg", &[])).0, ns, "{mode} {from}");
        }
    }
    host.end();
}

/// A thread with 12.6 % of the CPU time was shown with 27.6 %, a process that used 1.14 s with
/// 4.35 s: CPU samples were
/// counted, whatever they stood for.
#[test]
fn threads_have_their_share_of_the_cpu_and_the_process_its_time_by_http_and_by_the_command() {
    let directory = Directory::new();
    let host = light_threads(&directory);
    let (pid, socket) = (host.pid().to_string(), host.socket());
    let get = |more: &str| {
        let target = format!("/profile.folded?seconds=2&hz=100&mode=cpu{more}");
        let answer = http::get(&socket, &target).and_then(http::Answer::read_all).expect("an answer");
        String::from_utf8(answer.body).expect("text")
    };
    let record = |more: &[&str]| {
        let arguments = ["record", &pid, "-d", "2s", "-r", "100", "-q", "-f", "folded", "-o", "-"];
        says(arguments.iter().chain(more)).well().out
    };
    for weight in ["", "ns", "samples"] {
        let (parameter, options) = match weight {
            "" => (String::new(), vec![]),
            _ => (format!("&weight={weight}"), vec!["--weight", weight]),
        };
        let before_ns = cpu_ns(host.pid());
        // Both at the same time.
        let both = std::thread::scope(|scope| {
            let requested = scope.spawn(|| get(&parameter));
            [record(&options), requested.join().expect("a recording")]
        });
        // With what the agent used.
        let used_ns = cpu_ns(host.pid()) - before_ns;
        for folded in both {
            assert!(share(&folded, "light_main") < 0.7, "{weight} {folded}");
            // What the process used, in nanoseconds; a hundred samples a second and thread.
            let expected = match weight {
                "samples" => 1..100_000,
                _ => (used_ns / 2).saturating_sub(SLACK_NS).max(1)..used_ns + SLACK_NS,
            };
            assert!(expected.contains(&sum(&folded)), "{weight} {expected:?} {folded}");
        }
    }
    host.end();
}

#[test]
fn recordings_of_cpu_time_and_of_wall_clock_time_are_not_compared() {
    let directory = Directory::new();
    let path = |name: &str| directory.path().join(name).display().to_string();
    let host = light_threads(&directory);
    let pid = host.pid().to_string();
    says(["record", &pid, "-d", "2s", "-r", "100", "--mode", "cpu", "-o", &path("cpu.jsonl")]).well();
    says(["record", &pid, "-d", "500ms", "--mode", "wall", "-o", &path("wall.jsonl")]).well();
    host.end();
    for format in ["perf", "pb.gz"] {
        says(["convert", &path("cpu.jsonl"), "-o", &path(&format!("cpu.{format}"))]).well();
    }
    for cpu in ["cpu.jsonl", "cpu.perf", "cpu.pb.gz"] {
        let said = says(["diff", &path(cpu), &path("wall.jsonl")]);
        said.refuses(2, &["cpu", "is of CPU time", "is of wall-clock time", "--mode"]);
    }
    // What light threads take is compared by its time.
    let said = says(["diff", &path("cpu.jsonl"), &path("cpu.pb.gz")]).well();
    let line = said.out.lines().find(|line| line.ends_with(" light_main")).expect("a line").to_owned();
    let total: f64 = line.split_whitespace().nth(4).expect("a share").parse().expect("a number");
    assert!(total < 70.0 && said.out.contains(" s before"), "{said:?}");
}
