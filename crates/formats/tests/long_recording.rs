//! A long recording of many threads: how much memory formats need that are written at its end.

use std::sync::Arc;

use swipr_formats::model::{Mode, Sample, Stack, State, Thread};
use swipr_formats::{FORMATS, FormatInfo, Options};
use swipr_properties::counting::{Counting, forget_most, held_bytes};
use swipr_properties::recording::{Recording, function, module, native, stack, thread};

#[global_allocator]
static HEAP: Counting = Counting;

const SECONDS: u64 = 1200;
const HZ: u64 = 100;
const THREADS: u32 = 500;
/// These compute; the others wait, with one sample a second.
const BUSY: u32 = 3;
const STACKS: u64 = 3000;

fn stacks() -> Vec<Arc<Stack>> {
    let app = module("/usr/bin/app", 0);
    let frame = |id: u64| native(id, &app, vec![function(&format!("f{id}"), 0)]);
    let of =
        |n: u64| stack((0..20).map(|depth| frame(if depth < 3 { n * 3 + depth } else { depth })).collect());
    (0..STACKS).map(of).collect()
}

/// The most that a format had in memory in the first half and in the second, and the
/// file's size.
fn memory_of(format: &FormatInfo) -> (isize, isize, usize) {
    let (header, stacks) = (Recording::new(Mode::Wall).header, stacks());
    let threads: Vec<Arc<Thread>> =
        (1..=THREADS).map(|tid| thread(tid, &format!("worker-{}", tid % 20))).collect();
    let (before, mut half) = (held_bytes().0, 0);
    let mut writer = (format.make)(&Options::default());
    let mut out = vec![];
    writer.begin(&header, &mut out);
    for second in 0..SECONDS {
        for (thread, place) in threads.iter().zip(0..u64::from(THREADS)) {
            let is_busy = thread.tid <= BUSY;
            let (state, ticks) =
                if is_busy { (State::Running, 1) } else { (State::Blocked(Some(202)), HZ as u32) };
            for tick in 0..HZ / u64::from(ticks) {
                let number = if is_busy { second * 7919 + tick * 31 + place } else { place };
                let stack = &stacks[(number % STACKS) as usize];
                let time_ns = header.start_ns + second * 1_000_000_000 + tick * header.interval_ns;
                writer.sample(
                    &Sample { time_ns, ticks, thread, state, weight_ns: header.interval_ns, stack },
                    &mut out,
                );
            }
        }
        if second == SECONDS / 2 {
            half = held_bytes().1 - before;
            forget_most();
        }
    }
    let end = held_bytes().1 - before;
    writer.finish(&Default::default(), &mut out);
    (half, end, out.len())
}

#[test]
fn twenty_minutes_of_500_threads_need_no_more_memory_than_ten() {
    let late = FORMATS.iter().filter(|format| !format.streams);
    std::thread::scope(|scope| {
        let found: Vec<_> = late.map(|format| (format.name, scope.spawn(|| memory_of(format)))).collect();
        for (name, memory) in found {
            let (half, end, size) = memory.join().expect("the format's thread");
            println!("{name}: {half} bytes in ten minutes, {end} in the next ten, a file of {size}");
            assert!(end <= half + half / 20, "{name}: {end} bytes after {half}");
            assert!(end < 48 << 20, "{name}: {end} bytes");
            assert!(size < 8 << 20, "{name}: a file of {size} bytes");
        }
    });
}
