//! Hits of a thread that also represent windows without one.

use super::{Account, Fate, Hit, Kind, WEIGHT};

/// (1 + x / n)^n is near enough to e^x.
const EXPONENT: i32 = 1024;

impl Account {
    /// The hits of the last window that are donors, see [`Account::donate`].
    pub fn take_donors(&mut self) -> Vec<Hit> {
        std::mem::take(&mut self.donors)
    }

    /// Makes the window's hits donors to windows without one, if it could as well be one of these.
    /// A thread that runs for so long has no hit with the probability p. For each window with a hit
    /// there are p / (1 - p) without.
    pub(super) fn donate(&mut self, running_ns: u64, interval_ns: u64, ends: bool) {
        let hits: Vec<&Hit> = self.hits_of(Kind::Running).collect();
        let all: f64 = hits.iter().map(|hit| f64::from(hit.weight)).sum();
        if hits.is_empty() || !matches!(self.fate_of_unhit(running_ns, interval_ns, ends), Fate::Shared) {
            return;
        }
        let ticks = running_ns as f64 / interval_ns.max(self.tick_ns) as f64;
        // e to the power of `ticks`, without the mathematical library.
        let odds = (1.0 + ticks / f64::from(EXPONENT)).powi(EXPONENT);
        let of_window = ticks / (odds - 1.0).max(f64::EPSILON) * f64::from(WEIGHT);
        let donors = |hit: &&Hit| {
            let weight = (of_window * f64::from(hit.weight) / all) as u32;
            (weight > 0).then(|| Hit { weight, ..(*hit).clone() })
        };
        self.donors = hits.iter().filter_map(donors).collect();
    }
}
