//! How often a thread has left a CPU.

/// Times that a thread has left a CPU, by its `status` file (proc(5)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Switches {
    /// It blocked.
    pub voluntary: u64,
    /// It could have run on.
    pub involuntary: u64,
}

impl Switches {
    /// `None`: the kernel does not say, or the thread has ended.
    pub fn of(tid: u32) -> Option<Switches> {
        let status = crate::process::read_text(&format!("/proc/self/task/{tid}/status")).ok()?;
        let number =
            |name: &str| status.lines().find_map(|line| line.strip_prefix(name))?.trim().parse().ok();
        let voluntary = number("voluntary_ctxt_switches:")?;
        Some(Switches { voluntary, involuntary: number("nonvoluntary_ctxt_switches:")? })
    }

    /// Of those since `before`, which share was voluntary; `None`: there were none.
    pub fn voluntary_share(self, before: Switches) -> Option<f32> {
        let voluntary = self.voluntary.saturating_sub(before.voluntary);
        let all = voluntary + self.involuntary.saturating_sub(before.involuntary);
        (all > 0).then(|| voluntary as f32 / all as f32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process;
    use std::time::Duration;

    #[test]
    fn a_thread_that_sleeps_leaves_its_cpu_by_itself() {
        let before = Switches::of(process::tid()).unwrap();
        (0..20).for_each(|_| std::thread::sleep(Duration::from_micros(200)));
        let after = Switches::of(process::tid()).unwrap();
        assert!(after.voluntary >= before.voluntary + 20, "{before:?} {after:?}");
        assert!(after.voluntary_share(before).is_some_and(|share| share > 0.0));
        assert_eq!(after.voluntary_share(after), None);
    }
}
