//! When a recording's ticks are: one in each interval, at a random time in it.
//!
//! Work that repeats with the sampling interval would otherwise be caught at the same place each
//! time, and what lies beside that place never ("aliasing"). One tick an interval, uniform within
//! it, makes every moment equally likely and keeps the number of ticks exact (stratified sampling).
//!
//! Ticks are absolute times: a late tick does not shift later ones. The first tick is at once, so
//! that a recording of one sample takes no time.

/// The ticks of a recording.
#[derive(Clone, Debug)]
pub struct Ticks {
    base_ns: u64,
    interval_ns: u64,
    /// The interval that the next tick belongs to, counted from the first one.
    index: u64,
    next_ns: u64,
}

impl Ticks {
    /// The first interval begins now.
    pub fn new(interval_ns: u64, now_ns: u64) -> Ticks {
        Ticks { base_ns: now_ns, interval_ns: interval_ns.max(1), index: 0, next_ns: now_ns }
    }

    /// When the next tick is.
    pub fn next_ns(&self) -> u64 {
        self.next_ns
    }

    /// Takes the tick that is due at `now_ns` (or is taken early) and the missed ticks before it.
    /// Returns the number of missed ticks.
    pub fn take(&mut self, now_ns: u64) -> u64 {
        let current = now_ns.saturating_sub(self.base_ns) / self.interval_ns;
        let latest = if self.due_ns(current) <= now_ns { current } else { current.saturating_sub(1) };
        let skipped = latest.saturating_sub(self.index);
        self.index += skipped + 1;
        self.next_ns = self.due_ns(self.index);
        skipped
    }

    fn due_ns(&self, index: u64) -> u64 {
        let random = if index == 0 { 0 } else { u128::from(mixed(index ^ self.base_ns.rotate_left(32))) };
        let offset = (random * u128::from(self.interval_ns)) >> 64;
        let start = self.base_ns.saturating_add(index.saturating_mul(self.interval_ns));
        start.saturating_add(offset as u64)
    }
}

/// SplitMix64's output function: all bits of the result depend on all bits of `value`.
pub fn mixed(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ value >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn times(ticks: &mut Ticks, count: usize) -> Vec<u64> {
        std::iter::repeat_with(|| {
            let at = ticks.next_ns();
            assert_eq!(ticks.take(at), 0);
            at
        })
        .take(count)
        .collect()
    }

    #[test]
    fn there_is_one_tick_in_each_interval_and_it_may_be_anywhere_in_it() {
        let start = 123_456_789_012;
        let times = times(&mut Ticks::new(10 * MS, start), 10_001);
        assert_eq!(times[0], start);
        let mut tenths = [0; 10];
        for (number, at) in times.iter().enumerate().skip(1) {
            let since = at - start;
            assert_eq!(since / (10 * MS), number as u64);
            tenths[(since % (10 * MS) / MS) as usize] += 1;
        }
        // 1,000 each, with a standard deviation of 30.
        assert!(tenths.iter().all(|count| (850..1150).contains(count)), "{tenths:?}");
    }

    #[test]
    fn ticks_that_are_over_are_skipped_and_counted_and_the_rest_stay_where_they_were() {
        let mut undisturbed = Ticks::new(MS, 50 * MS);
        let expected = times(&mut undisturbed, 30);
        let mut late = Ticks::new(MS, 50 * MS);
        times(&mut late, 10);
        assert_eq!(late.take(expected[14] + 1), 4, "ticks 10 to 13 are over, 14 is taken");
        assert_eq!(times(&mut late, 15), expected[15..]);
    }

    #[test]
    fn a_tick_taken_early_counts_once() {
        let mut ticks = Ticks::new(MS, 50 * MS);
        let expected = times(&mut ticks.clone(), 3);
        ticks.take(expected[0]);
        assert_eq!(ticks.take(expected[1] - 1), 0);
        assert_eq!(ticks.next_ns(), expected[2]);
    }

    #[test]
    fn the_longest_and_shortest_intervals_do_not_overflow() {
        for interval in [0, 1, u64::MAX] {
            let mut ticks = Ticks::new(interval, 1_000_000);
            ticks.take(1_000_000);
            assert!(ticks.next_ns() > 0);
        }
    }
}
