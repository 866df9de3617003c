//! Who waits for a recording of itself: programs that are started in order to be recorded.

/// Whose children wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AwaitedBy {
    /// This process's.
    Parent(u32),
    /// Everybody's.
    Anybody,
}

impl AwaitedBy {
    pub(super) fn parse(text: &str) -> Result<AwaitedBy, String> {
        match (text, text.parse()) {
            ("all", _) => Ok(AwaitedBy::Anybody),
            (_, Ok(pid)) => Ok(AwaitedBy::Parent(pid)),
            _ => Err("it is neither a process id nor all".to_owned()),
        }
    }

    /// Whether a process with this parent waits.
    pub fn is_meant(self, parent: u32) -> bool {
        self == AwaitedBy::Anybody || self == AwaitedBy::Parent(parent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_children_of_the_process_that_is_named_wait() {
        let one = AwaitedBy::parse("7").expect("a process id");
        assert!(one.is_meant(7) && !one.is_meant(8));
        let all = AwaitedBy::parse("all").expect("everybody");
        assert!(all.is_meant(7) && all.is_meant(1));
        for wrong in ["", "-1", "7 8", "everybody"] {
            assert!(AwaitedBy::parse(wrong).is_err(), "{wrong}");
        }
    }
}
