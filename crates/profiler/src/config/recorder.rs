//! Which processes wait for a recording of themselves: programs that are started in order to be
//! recorded.

/// Which processes wait, by the process that records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitingFor {
    /// The children of this process.
    Parent(u32),
    /// The children of this process, and their descendants.
    Descendants(u32),
}

impl WaitingFor {
    pub(super) fn parse(text: &str) -> Result<WaitingFor, String> {
        let pid = |text: &str| {
            let pid = super::digits(text).and_then(|pid| u32::try_from(pid).ok());
            pid.ok_or_else(|| "it is neither a process id nor all:<process id>".to_owned())
        };
        match text.strip_prefix("all:") {
            Some(text) => pid(text).map(WaitingFor::Descendants),
            None => pid(text).map(WaitingFor::Parent),
        }
    }

    /// The process that records.
    pub fn recorder(self) -> u32 {
        match self {
            WaitingFor::Parent(recorder) | WaitingFor::Descendants(recorder) => recorder,
        }
    }

    /// Whether a process with this parent waits.
    pub fn is_meant(self, parent: u32) -> bool {
        matches!(self, WaitingFor::Descendants(_)) || self == WaitingFor::Parent(parent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_children_of_the_process_that_is_named_wait() {
        let one = WaitingFor::parse("7").expect("a process id");
        assert!(one.is_meant(7) && !one.is_meant(8));
        let all = WaitingFor::parse("all:7").expect("everybody");
        assert!(all.is_meant(7) && all.is_meant(1) && all.recorder() == 7);
        for wrong in ["", "-1", "+7", "all:+7", "4294967296", "7 8", "all", "all:", "everybody"] {
            assert!(WaitingFor::parse(wrong).is_err(), "{wrong}");
        }
    }
}
