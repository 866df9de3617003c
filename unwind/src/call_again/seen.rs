//! What a thread did between the sampler's look at it and the signal.

use super::SHORT_NS;

/// What must have passed on the system's clock beyond the thread's own CPU time for it to have slept: more than what
/// two readings of the clocks differ by, less than the shortest sleep (a thread takes as long to be woken).
const SLEPT_NS: u64 = 3000;
/// A drift of the system's clock against the threads', which nobody disciplines: one in so many.
const DRIFT: u64 = 1 << 10;

/// A moment at which the sampler saw that a thread was not asleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// On the system's clock (CLOCK_MONOTONIC); not before that moment.
    pub at_ns: u64,
    /// Its CPU clock when the sampler began to look.
    pub first_cpu_ns: u64,
    /// What it did.
    pub awake: Awake,
    /// On the same clock, after our signal was there for it, if that is known already: from then on it could do nothing but take it.
    pub sent_ns: Option<u64>,
}

/// What a thread has computed at least that has done more than to be woken in a call and to leave it, or to run a handler that only notes its signal: that takes a third of it, mostly.
const COMPUTED_NS: u64 = 20_000;

/// A thread when the handler came. What it does in there says nothing of before: it may wait for the process' memory map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// On the system's clock (CLOCK_MONOTONIC).
    pub at_ns: u64,
    /// Its CPU clock.
    pub cpu_ns: u64,
}

/// What a thread does that is not asleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Awake {
    /// It was on a CPU: its CPU clock was moving, and had reached so many nanoseconds.
    Runs(u64),
    /// It waited for a CPU, and where it goes on is not known.
    Waits,
    /// The same, and it had not got one when the signal was there for it.
    WaitsStill,
}

/// What a thread did since the sampler saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Since {
    /// It was not seen awake, or too long ago.
    Unknown,
    /// It was awake, and may not have slept.
    Awake,
    /// It has not run until our signal was there: whatever was cut short is what it was in already.
    Waited,
    /// It was on a CPU, and has been ever since, for a moment.
    Ran,
    /// It has done more than to leave a call that it was in: what was cut short has begun since.
    Computed,
    /// It was on a CPU, and slept.
    Slept,
}

impl Seen {
    /// What the thread did between that moment and `now`.
    #[inline(always)]
    pub fn until(&self, now: Now) -> Since {
        let passed = now.at_ns.saturating_sub(self.at_ns);
        let unseen = self.sent_ns.unwrap_or(now.at_ns).saturating_sub(self.at_ns);
        let least_ns = SLEPT_NS + passed / DRIFT;
        let slept = |since: u64| passed.saturating_sub(now.cpu_ns.saturating_sub(since)) >= least_ns;
        let has_computed = now.cpu_ns.saturating_sub(self.first_cpu_ns) >= COMPUTED_NS;
        match self.awake {
            Awake::WaitsStill => Since::Waited,
            _ if unseen > SHORT_NS => Since::Unknown,
            Awake::Runs(cpu_ns) if slept(cpu_ns) => Since::Slept,
            _ if has_computed => Since::Computed,
            Awake::Runs(_) => Since::Ran,
            Awake::Waits => Since::Awake,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// After so long, in which the thread used so much; the signal was there after `sent` nanoseconds.
    fn since(awake: Awake, sent: Option<u64>, ns: u64, cpu_ns: u64) -> Since {
        let seen =
            Seen { at_ns: 1_000_000, first_cpu_ns: 69_000, awake, sent_ns: sent.map(|ns| 1_000_000 + ns) };
        seen.until(Now { at_ns: seen.at_ns + ns, cpu_ns: 70_000 + cpu_ns })
    }

    #[test]
    fn who_has_run_all_the_while_has_not_slept() {
        let after = |ns, cpu_ns| since(Awake::Runs(70_000), None, ns, cpu_ns);
        assert_eq!(after(15_000, 15_000), Since::Ran);
        assert_eq!(after(15_000, 15_900), Since::Ran, "clocks differ a little");
        assert_eq!(after(15_000, 14_000), Since::Ran);
        assert_eq!(after(50_000, 50_000), Since::Computed);
        assert_eq!(after(50_000, 2_000), Since::Slept);
        assert_eq!(after(7_000, 2_000), Since::Slept);
        assert_eq!(after(15_000_000, 14_990_000), Since::Computed, "the system's clock is a little faster");
        assert_eq!(after(30_000_000, 2_000), Since::Unknown, "who knows when it began");
    }

    #[test]
    fn who_waits_for_a_cpu_with_our_signal_does_nothing_else() {
        let sent = |ns| since(Awake::Runs(70_000), Some(ns), 300_000_000, 4000);
        assert_eq!(sent(5000), Since::Slept);
        assert_eq!(sent(30_000_000), Since::Unknown, "it could do much before");
    }

    #[test]
    fn who_waited_for_a_cpu_may_have_been_woken_in_its_call() {
        assert_eq!(since(Awake::Waits, None, 900_000, 4000), Since::Awake);
        assert_eq!(since(Awake::Waits, None, 900_000, 40_000), Since::Computed);
        assert_eq!(since(Awake::WaitsStill, None, 1_000_000_000, 4000), Since::Waited, "however long");
    }
}
