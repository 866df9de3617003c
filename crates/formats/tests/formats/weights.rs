//! One recording weighs the same in every format, whatever its weights are.

use swipr_formats::model::{Mode, State};
use swipr_formats::{GPERFTOOLS, Options, Weight};
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
    let options = Options { weight: Some(weight), merge_threads, ..Options::default() };
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

/// A thread that used 12.6 % of the CPU was met at 276 of 1,000 ticks, and folded text said 27.6 %.
#[test]
fn a_light_thread_has_its_share_of_the_cpu_wherever_weights_are_counts() {
    let app = module("/usr/bin/app", 0);
    let of = |name: &str, address| stack(vec![native(address, &app, vec![function(name, 1)])]);
    let mut recording = Recording::new(Mode::Cpu);
    for number in 0..1000 {
        let (name, address, weight_ns) = match number % 1000 < 276 {
            true => ("light", 1, 3_780_000),
            false => ("heavy", 2, 10_000_000),
        };
        recording.add(&thread(1, name), State::Running, weight_ns, &of(name, address));
    }
    let all_ns = 276 * 3_780_000 + 724 * 10_000_000;
    let lines = |weight| {
        let text = recording.text("folded", &Options { weight, ..Options::default() });
        let count = |line: &str| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap();
        text.lines().map(count).collect::<Vec<_>>()
    };
    assert_eq!(lines(None), [7_240_000_000, 1_043_280_000]);
    assert_eq!(lines(Some(Weight::Samples)), [724, 276]);
    let profile = decode(&recording.write("pprof", &Options::default()));
    assert_eq!(profile.sample.iter().map(|sample| sample.value[1] as u64).sum::<u64>(), all_ns);
    let mut writer = (GPERFTOOLS.make)(&Options::default());
    let mut bytes = Vec::new();
    writer.begin(&recording.header, &mut bytes);
    recording.samples.iter().for_each(|sample| writer.sample(&sample.as_sample(), &mut bytes));
    writer.finish(&recording.summary, &mut bytes);
    let words: Vec<u64> =
        bytes[..15 * 8].chunks(8).map(|word| u64::from_ne_bytes(word.try_into().unwrap())).collect();
    // A head, each stack with one address, and the end.
    assert_eq!(words[..11], [0, 3, 0, 10_000, 0, 104, 1, 1, 724, 1, 2]);
}
