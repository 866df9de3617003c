//! No stack that is given out may be wrong: threads change their stacks as fast as they can while
//! they are sampled, and every stack is judged by its names alone. A few seconds here;
//! `benches/verify/truth` takes a million stacks by the same test.

use std::ffi::OsStr;
use std::sync::LazyLock;
use swipr_c_tests::directory::Directory;
use swipr_c_tests::expectation::expect;
use swipr_c_tests::host::{Agent, Host, Start};
use swipr_c_tests::http;
use swipr_c_tests::program::{Program, compiled};
use swipr_c_tests::truth::{Jumps, Verdict, judge};

/// How many stacks to take of each program: walked, not used again, and to their roots.
const STACKS_VARIABLE: &str = "SWIPR_TRUTH_STACKS";
/// Where it is not set.
const STACKS: u64 = 5_000;
/// A program lives a minute: so many recordings of each, twice.
const ROUNDS: usize = 4;

#[derive(Debug, Default)]
struct Tally {
    /// Walks that ended at the thread's root.
    whole: u64,
    copied: u64,
    interrupted: u64,
    reused: u64,
    samples: u64,
    cut: u64,
    wrong: Vec<String>,
}

/// One figure of the agent.
fn metric(host: &Host, series: &str) -> u64 {
    let answer = http::get(&host.socket(), "/metrics").and_then(http::Answer::read_all).expect("an answer");
    let text = String::from_utf8(answer.body).expect("text");
    let value = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    value.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("no {series} in {text}"))
}

impl Tally {
    /// Records once and judges every stack.
    fn record(&mut self, host: &Host, mode: &str, jumps: Jumps) {
        let figures = || {
            let by = |way| metric(host, &format!("swipr_stacks_total{{by=\"{way}\"}}"));
            let whole = metric(host, "swipr_walks_total{end=\"complete\"}");
            [whole, by("copy"), by("signal"), by("reuse")]
        };
        let before = figures();
        let query = "seconds=2&hz=5000&format=folded&inline=false&threads=runner%7Cwaiter";
        let recording = host.record(&format!("{query}&mode={mode}"));
        let figures = figures().into_iter().zip(before).map(|(after, before)| after - before);
        let sums = [&mut self.whole, &mut self.copied, &mut self.interrupted, &mut self.reused];
        sums.into_iter().zip(figures).for_each(|(sum, more)| *sum += more);
        for sample in recording.samples {
            // CPU time that was not sampled has no stack.
            if sample.frames.iter().all(|frame| frame.name == "[not sampled]") {
                continue;
            }
            self.samples += sample.weight;
            match judge(&sample, jumps) {
                Verdict::True => {}
                Verdict::Cut => self.cut += sample.weight,
                Verdict::Wrong(why) => self.wrong.push(format!("{} times {why}", sample.weight)),
            }
        }
    }
}

/// Compiling it takes longer than anything else.
static OPTIMISED: LazyLock<(Directory, Program)> = LazyLock::new(|| compiled("truth"));

fn stress(program: &Program, jumps: Jumps) {
    let wanted = std::env::var(STACKS_VARIABLE).ok().map_or(STACKS, |text| text.parse().expect("a number"));
    let name = &program.name;
    let mut tally = Tally::default();
    while tally.whole < wanted {
        let host = Host::start(program);
        for _ in 0..ROUNDS {
            ["wall", "cpu"].into_iter().for_each(|mode| tally.record(&host, mode, jumps));
            if tally.whole >= wanted {
                break;
            }
        }
        host.end();
    }
    let Tally { whole, copied, interrupted, reused, samples, cut, wrong } = &tally;
    println!(
        "{name}: {whole} whole stacks, {copied} copied and {interrupted} interrupted with those that were cut; in {samples} samples with {reused} \
         stacks used again: {cut} cut, {} wrong",
        wrong.len()
    );
    assert!(
        wrong.is_empty(),
        "{} kinds of wrong stacks, such as {:#?}",
        wrong.len(),
        &wrong[..wrong.len().min(12)]
    );
    assert!(*copied * 50 > wanted && *interrupted * 50 > wanted, "one way is hardly in it: {tally:?}");
    // A blocked thread's frame pointer is not known, and below alloca and aligned stacks nothing
    // else tells where the caller is.
    let most_cut = if jumps == Jumps::Taken { 60 } else { 1 };
    assert!(*cut * 100 <= *samples * most_cut, "{cut} of {samples} stacks were cut");
}

#[test]
fn no_stack_of_optimised_code_is_wrong() {
    stress(&OPTIMISED.1, Jumps::Taken);
}

#[test]
fn no_stack_of_unoptimised_code_is_wrong() {
    stress(&compiled("truth_unoptimised").1, Jumps::AreCalls);
}

/// With a stack this small left, a thread is still safe.
const HANDLER_STACK_BYTES: u64 = 512;

/// Threads with alternate stacks of their own, interrupted everywhere, with everything that an
/// unwinder meets there, cold and warm.
#[test]
fn the_handler_needs_little_stack() {
    let start = Start { program: &OPTIMISED.1, arguments: &[OsStr::new("painted")], agent: Agent::Loaded };
    let mut host = Host::start_with(start);
    let recording = host.record("seconds=2&hz=2000&format=folded&inline=false&threads=runner%7Cwaiter");
    expect(&recording, &["samples >= 500"]);
    host.tell_end();
    let used: u64 = host.wait_for("used").parse().expect("a number");
    assert!(host.ended().success());
    println!("the handler used {used} bytes of stack below the kernel's frame");
    assert!(used > 0, "the handler ran somewhere else");
    assert!(used <= HANDLER_STACK_BYTES, "{used} bytes below the kernel's frame");
}
