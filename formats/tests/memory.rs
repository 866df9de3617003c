//! A long recording of many threads takes no more memory than one half as long, in any format.
//!
//! An hour of 500 threads at 100 Hz is 180 million samples. Here it is an hour of 500 threads at 2/3 Hz: every bound that holds for
//! the whole (spans, stacks, sums) is reached by a third of it.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use swipr_formats::model::{Mode, Sample, State, Summary};
use swipr_formats::{FORMATS, FormatInfo, Options};
use swipr_properties::recording::{Recording, function, module, native, stack, thread};

/// Counts what is allocated now, and the most that ever was.
struct Counted;

static NOW: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

fn changes(by: usize, minus: usize) {
    let now = NOW.fetch_add(by, Relaxed).wrapping_add(by).wrapping_sub(minus);
    NOW.fetch_sub(minus, Relaxed);
    MOST.fetch_max(now, Relaxed);
}

// SAFETY: the system's allocator does it all.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        changes(layout.size(), 0);
        // SAFETY: the caller's contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        changes(0, layout.size());
        // SAFETY: the caller's contract.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static COUNTED: Counted = Counted;

const THREADS: u32 = 500;
const TICKS: u64 = 2400;
const TICK_NS: u64 = 1_500_000_000;

/// The most memory that a format takes for so many ticks, in bytes above what was there before; what it writes is taken away at once.
fn most_bytes(format: &FormatInfo, ticks: u64) -> usize {
    let recording = Recording::new(Mode::Wall);
    let app = module("/bin/app", 0);
    let names: Vec<String> = (0..40).map(|number| format!("function_{number}")).collect();
    let frame = |number: usize| native(16 * number as u64, &app, vec![function(&names[number], 4)]);
    let stacks: Vec<_> =
        (0..400).map(|n| stack((0..12).map(|d| frame((n * 7 + n / 40 * d + d) % 40)).collect())).collect();
    let threads: Vec<_> = (0..THREADS).map(|tid| thread(1000 + tid, &format!("worker-{tid}"))).collect();
    let (before, mut out) = (NOW.load(Relaxed), Vec::new());
    MOST.store(before, Relaxed);
    let mut writer = (format.make)(&Options::default());
    writer.begin(&recording.header, &mut out);
    for tick in 0..ticks {
        for (thread, number) in threads.iter().zip(0..) {
            let which = (tick * 31 + number * 17 + tick * number) as usize % stacks.len();
            let time_ns = recording.header.start_ns + tick * TICK_NS;
            let (state, stack) =
                (if which < 100 { State::Running } else { State::Blocked(Some(202)) }, &stacks[which]);
            writer.sample(&Sample { time_ns, ticks: 1, thread, state, weight_ns: TICK_NS, stack }, &mut out);
        }
        out.clear();
    }
    let samples = ticks * u64::from(THREADS);
    writer.finish(&Summary { samples, ticks, threads: u64::from(THREADS), ..Summary::default() }, &mut out);
    MOST.load(Relaxed) - before
}

#[test]
fn an_hour_takes_no_more_memory_than_half_an_hour_in_any_format() {
    for format in FORMATS {
        let [half, whole] = [TICKS / 2, TICKS].map(|ticks| most_bytes(format, ticks));
        println!("{}: {} KiB for half of it, {} KiB for the whole", format.name, half >> 10, whole >> 10);
        assert!(whole <= half + half / 5, "{}: {half} bytes, then {whole}", format.name);
        assert!(whole < 100 << 20, "{}: {whole} bytes", format.name);
    }
}
