//! One recording weighs the same in every format, whatever its weights are.

use swipr_formats::model::{Mode, State};
use swipr_formats::{Options, Weight};
use swipr_properties::readers::perf;
use swipr_properties::readers::pprof::decode;
use swipr_properties::readers::viewers::{self, Weighted};

use swipr_properties::recording::{Recording, function, module, native, stack, thread};

/// Numbers that look random and are the same each time (xorshift).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

fn random(seed: u64, mode: Mode) -> Recording {
    let mut numbers = Numbers(seed * 2 + 1);
    let app = module("/usr/bin/app", 0);
    let mut recording = Recording::new(mode);
    for _ in 0..200 {
        let depth = numbers.below(6);
        let frames = (0..depth)
            .map(|_| {
                let id = numbers.below(4);
                native(id, &app, vec![function(&format!("f{id}"), id)])
            })
            .collect();
        let tid = numbers.below(3) as u32 + 1;
        let state = match numbers.below(3) {
            0 => State::Running,
            1 => State::Runnable,
            _ => State::Blocked(Some(0)),
        };
        let weight_ns = match mode {
            Mode::Wall => recording.header.interval_ns,
            Mode::Cpu => numbers.below(20_000_000),
        };
        let name = format!("thread {}", tid % 2);
        recording.add(&thread(tid, &name), state, weight_ns, &stack(frames));
    }
    recording
}

fn folded_sum(recording: &Recording, weight: Weight, merge_threads: bool) -> u64 {
    let options = Options { weight, merge_threads, ..Options::default() };
    let text = recording.text("folded", &options);
    text.lines().map(|line| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap()).sum()
}

#[test]
fn sums_are_equal_in_every_format() {
    for seed in 0..20 {
        for mode in [Mode::Wall, Mode::Cpu] {
            let recording = random(seed, mode);
            let count = recording.samples.len() as u64;
            let ns: u64 = recording.samples.iter().map(|s| s.weight_ns).sum();
            for merge_threads in [false, true] {
                let folded = |weight| folded_sum(&recording, weight, merge_threads);
                assert_eq!(folded(Weight::Samples), count);
                assert_eq!(folded(Weight::Nanoseconds), ns);
                let options = Options { merge_threads, ..Options::default() };
                let perf = perf::read(&recording.text("perf", &options));
                assert_eq!(perf.len() as u64, count);
                assert_eq!(perf.iter().map(|sample| sample.period).sum::<u64>(), ns);
                let profile = decode(&recording.write("pprof", &options));
                let sum = |index: usize| -> i64 { profile.sample.iter().map(|s| s.value[index]).sum() };
                assert_eq!((sum(0), sum(1)), (count as i64, ns as i64));
                let text = |format: &str| recording.text(format, &options);
                let ns_of = |all: Vec<Weighted>| all.iter().map(|each| each.ns).sum::<u64>();
                assert_eq!(ns_of(viewers::firefox(&text("firefox"))), ns);
                assert_eq!(ns_of(viewers::speedscope(&text("speedscope"))), ns);
                assert_eq!(ns_of(viewers::html(&text("html"))), ns);
                let (whole, boxes) = viewers::svg(&text("svg"));
                assert_eq!((whole, boxes[0].1), (ns, ns));
            }
        }
    }
}

#[test]
fn aggregated_output_does_not_grow_with_samples() {
    let mut recording = random(1, Mode::Wall);
    let folded = recording.text("folded", &Options::default());
    let pprof = decode(&recording.write("pprof", &Options::default()));
    let more = random(1, Mode::Wall).samples;
    recording.samples.extend(more);
    let twice = recording.text("folded", &Options::default());
    assert_eq!(twice.lines().count(), folded.lines().count());
    let twice = decode(&recording.write("pprof", &Options::default()));
    assert_eq!(twice.sample.len(), pprof.sample.len());
    assert_eq!(twice.location.len(), pprof.location.len());
}
