//! Durations, counted in powers of two: what the agent knows of its own cost.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Buckets: the last one holds everything from 2^39 ns (nine minutes) on.
const BUCKETS: usize = 40;

/// Written by one thread, read by others.
#[derive(Debug)]
pub struct Histogram {
    counts: [AtomicU64; BUCKETS],
    sum_ns: AtomicU64,
    largest_ns: AtomicU64,
}

/// A histogram at one moment, or between two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    counts: [u64; BUCKETS],
    /// Of all that were counted.
    pub sum_ns: u64,
    largest_ns: u64,
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram {
            counts: [const { AtomicU64::new(0) }; BUCKETS],
            sum_ns: AtomicU64::new(0),
            largest_ns: AtomicU64::new(0),
        }
    }
}

/// The result of [`Histogram::figures`], in nanoseconds. The percentiles are upper ends of buckets:
/// at most twice too large.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Percentiles {
    /// How many were counted.
    pub count: u64,
    /// Half of them took at most so long.
    pub p50_ns: u64,
    /// 99 of 100 did.
    pub p99_ns: u64,
    /// The longest.
    pub largest_ns: u64,
}

impl Histogram {
    /// Counts one.
    pub fn add(&self, ns: u64) {
        let bucket = (u64::BITS - ns.leading_zeros()) as usize;
        if let Some(count) = self.counts.get(bucket.min(BUCKETS - 1)) {
            count.fetch_add(1, Relaxed);
        }
        self.sum_ns.fetch_add(ns, Relaxed);
        self.largest_ns.fetch_max(ns, Relaxed);
    }

    /// The figures as they are now.
    pub fn figures(&self) -> Percentiles {
        self.counts().figures()
    }

    /// All of it as it is now.
    pub fn counts(&self) -> Counts {
        Counts {
            counts: self.counts.each_ref().map(|count| count.load(Relaxed)),
            sum_ns: self.sum_ns.load(Relaxed),
            largest_ns: self.largest_ns.load(Relaxed),
        }
    }
}

impl Counts {
    /// What was counted since `earlier`. The longest duration is not known for that time: it is
    /// that of all.
    pub fn since(&self, earlier: &Counts) -> Counts {
        let mut counts = self.counts;
        counts
            .iter_mut()
            .zip(earlier.counts)
            .for_each(|(count, before)| *count = count.saturating_sub(before));
        let sum_ns = self.sum_ns.wrapping_sub(earlier.sum_ns);
        Counts { counts, sum_ns, largest_ns: self.largest_ns }
    }

    /// For each bucket its upper end, which belongs to it, and how many are at most so long.
    pub fn cumulative(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.counts.iter().enumerate().scan(0, |below, (bucket, count)| {
            *below += count;
            Some((upper_end(bucket), *below))
        })
    }

    /// See [`Percentiles`].
    pub fn figures(&self) -> Percentiles {
        let Counts { counts, largest_ns, .. } = *self;
        let count = counts.iter().sum::<u64>();
        let percentile = |part: u64| {
            let wanted = (count * part).div_ceil(100);
            let mut below = 0;
            let bucket = counts.iter().position(|count| {
                below += count;
                below >= wanted
            });
            bucket.map_or(0, |bucket| upper_end(bucket).min(largest_ns))
        };
        Percentiles { count, p50_ns: percentile(50), p99_ns: percentile(99), largest_ns }
    }
}

fn upper_end(bucket: usize) -> u64 {
    (1u64 << bucket) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_at_most_twice_too_large() {
        let histogram = Histogram::default();
        assert_eq!(histogram.figures(), Percentiles::default());
        (1..=1000).for_each(|ns| histogram.add(ns));
        let figures = histogram.figures();
        assert_eq!((figures.count, figures.largest_ns), (1000, 1000));
        assert!((500..1000).contains(&figures.p50_ns), "{figures:?}");
        assert!((990..=1000).contains(&figures.p99_ns), "{figures:?}");
    }

    #[test]
    fn what_came_later_has_figures_of_its_own() {
        let histogram = Histogram::default();
        (0..100).for_each(|_| histogram.add(1_000_000));
        let earlier = histogram.counts();
        (0..10).for_each(|_| histogram.add(1000));
        let later = histogram.counts().since(&earlier);
        assert_eq!((later.figures().count, later.figures().p99_ns, later.sum_ns), (10, 1023, 10_000));
        assert_eq!(later.cumulative().find(|&(end, _)| end == 1023), Some((1023, 10)));
        assert_eq!(later.cumulative().find(|&(end, _)| end == 511), Some((511, 0)));
    }

    #[test]
    fn the_smallest_and_the_largest_duration_have_a_place() {
        let histogram = Histogram::default();
        histogram.add(0);
        assert_eq!(histogram.figures().p99_ns, 0);
        histogram.add(u64::MAX);
        assert_eq!((histogram.figures().count, histogram.figures().largest_ns), (2, u64::MAX));
    }
}
