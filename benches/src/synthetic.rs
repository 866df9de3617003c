//! Stacks of a chosen depth, made of many functions with frames of different sizes.

use crate::ticks;
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::*};

/// On cache lines of its own: a thread that polls one field does not slow down one that writes
/// another.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Apart<T>(pub T);

/// The last time that the leaf function was kept from running.
#[derive(Debug, Default)]
pub struct Gap {
    /// Ticks of the last look before.
    pub before: AtomicU64,
    /// Ticks of the first look after.
    pub after: AtomicU64,
    /// How many gaps there were.
    pub count: AtomicU64,
}

/// What the leaf function and its observer share.
#[derive(Debug, Default)]
pub struct Watch {
    /// Ends the leaf function.
    pub stop: Apart<AtomicBool>,
    /// Ticks from which on a pause counts as a gap.
    pub threshold: Apart<u64>,
    /// The last gap.
    pub gap: Apart<Gap>,
    /// What the leaf does instead of watching the clock.
    pub instead: Option<fn()>,
}

type Level = fn(&Watch, u32, u64) -> u64;

/// Runs `levels` functions deep, and watches the clock there until it has to stop.
pub fn run(watch: &Watch, levels: u32) -> u64 {
    next(watch, levels, 12_345)
}

#[inline(always)]
fn next(watch: &Watch, levels: u32, seed: u64) -> u64 {
    let at = (seed >> 40) as usize % LEVELS.len();
    match LEVELS.get(at) {
        Some(level) if levels > 0 => level(watch, levels - 1, seed),
        _ => watch.instead.map_or_else(|| spin(watch), |leaf| [leaf()].len() as u64),
    }
}

/// The leaf: reads the clock in a loop, and notes when a reading comes late.
#[inline(never)]
fn spin(watch: &Watch) -> u64 {
    let threshold = watch.threshold.0;
    let mut last = ticks::now();
    while !watch.stop.0.load(Relaxed) {
        let mut now = ticks::now();
        if now.wrapping_sub(last) > threshold {
            let gap = &watch.gap.0;
            gap.before.store(last, Relaxed);
            gap.after.store(now, Relaxed);
            gap.count.fetch_add(1, Release);
            now = ticks::now();
        }
        last = now;
    }
    last
}

/// A function whose frame has `BYTES` of locals; `FACTOR` makes each one different from the others.
#[inline(never)]
fn level<const BYTES: usize, const FACTOR: u64>(watch: &Watch, levels: u32, seed: u64) -> u64 {
    let mut locals = [0u8; BYTES];
    black_box(&mut locals);
    let kept: [u64; 3] = std::array::from_fn(|n| seed.wrapping_mul(FACTOR >> n | 1));
    let result = next(watch, levels, seed.wrapping_mul(FACTOR).wrapping_add(0x9e37_79b9_7f4a_7c15));
    black_box(&locals);
    // Used after the call: saved in registers or on the stack meanwhile.
    kept.iter().fold(result, |result, kept| result.rotate_left(7) ^ kept)
}

macro_rules! levels {
    ($($factor:literal)*) => {
        [$(
            level::<0, $factor>, level::<8, $factor>, level::<24, $factor>, level::<56, $factor>,
            level::<72, $factor>, level::<120, $factor>, level::<200, $factor>, level::<328, $factor>,
        )*]
    };
}

static LEVELS: [Level; 96] = levels!(
    0x5851_f42d_4c95_7f2d 0x2545_f491_4f6c_dd1d 0x9fb2_1c65_1e98_df25 0xd6e8_feb8_6659_fd93
    0xa076_1d64_78bd_642f 0xe703_7ed1_a0b4_28db 0x8ebc_6af0_9c88_c6e3 0x5899_65cc_7537_4cc3
    0x1d8e_4e27_c47d_124f 0xeb44_acca_b455_d165 0x3c6e_f372_fe94_f82b 0xbb67_ae85_84ca_a73b
);
