//! What a thread does with the agent's signal, and what its sandbox is.

/// What a thread does with a signal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SignalState {
    /// It has blocked it.
    pub is_blocked: bool,
    /// One that was sent to it has not been delivered.
    pub is_pending: bool,
    /// The seccomp state that restricts its system calls.
    pub sandbox: Sandbox,
    /// How many more signals may be queued for its user until half of `RLIMIT_SIGPENDING` is used;
    /// `None` where the kernel does not say.
    pub queue_room: Option<i64>,
}

/// The seccomp(2) state of a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sandbox {
    /// 0: none, 1: strict, 2: filters.
    mode: u32,
    /// How many filters; 0 also where the kernel does not say (before Linux 5.9).
    filters: u32,
}

impl Sandbox {
    /// By a `status` file.
    pub fn of_status(status: &str) -> Sandbox {
        let number = |name: &str| {
            let value = status.lines().find_map(|line| line.strip_prefix(name));
            value.and_then(|value| value.trim().parse().ok()).unwrap_or(0)
        };
        Sandbox { mode: number("Seccomp:"), filters: number("Seccomp_filters:") }
    }

    /// Whether a thread may be allowed less than one in `other`. Filters are inherited and never
    /// taken away: a thread with as many filters as its process's other threads has the same ones.
    pub fn is_stricter_than(self, other: Sandbox) -> bool {
        self.filters > other.filters || self.mode != other.mode && self.mode != 0
    }
}

/// Of `SigQ`, "used/limit", see [`SignalState::queue_room`].
fn queue_room(queue: &str) -> Option<i64> {
    let (used, limit) = queue.trim().split_once('/')?;
    let (used, limit): (u64, u64) = (used.parse().ok()?, limit.parse().ok()?);
    if limit == 0 {
        return None; // a kernel that does not count, or refuses timers itself
    }
    i64::try_from(limit / 2).ok()?.checked_sub(i64::try_from(used).ok()?)
}

/// `SigBlk`, `SigPnd`, `SigQ` and `Seccomp` of a thread's status file (proc(5)).
pub fn signal_state(tid: u32) -> Option<SignalState> {
    let status = crate::process::read_text(&format!("/proc/self/task/{tid}/status")).ok()?;
    let has = |name: &str| {
        let mask = status.lines().find_map(|line| line.strip_prefix(name))?;
        Some(u64::from_str_radix(mask.trim(), 16).ok()? >> (crate::signals::SAMPLING - 1) & 1 == 1)
    };
    let sandbox = Sandbox::of_status(&status);
    let queue_room = status.lines().find_map(|line| line.strip_prefix("SigQ:")).and_then(queue_room);
    Some(SignalState { is_blocked: has("SigBlk:")?, is_pending: has("SigPnd:")?, sandbox, queue_room })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_signals_that_may_be_queued_are_left_to_others() {
        assert_eq!(queue_room("\t1/41"), Some(19));
        assert_eq!(queue_room("\t30/41"), Some(-10));
        assert_eq!(queue_room("\t0/18446744073709551615"), Some(i64::MAX));
        assert_eq!((queue_room("\t1"), queue_room("\t0/0")), (None, None));
    }

    #[test]
    fn a_sandbox_in_a_sandbox_is_stricter() {
        let sandbox = |mode, filters| Sandbox { mode, filters };
        assert!(sandbox(1, 0).is_stricter_than(sandbox(0, 0)));
        assert!(
            sandbox(2, 1).is_stricter_than(sandbox(0, 0)) && sandbox(2, 0).is_stricter_than(sandbox(0, 0))
        );
        assert!(sandbox(2, 2).is_stricter_than(sandbox(2, 1)));
        assert!(
            !sandbox(2, 1).is_stricter_than(sandbox(2, 1)) && !sandbox(0, 0).is_stricter_than(sandbox(2, 1))
        );
    }
}
