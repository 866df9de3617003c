//! CPU time that is not in a recording, by what the kernel counted.

use super::progress::Talk;
use crate::say;
use std::time::Duration;

/// CPU time that may be missing without a word: the kernel counts it in hundredths of a second, and
/// the loader's is not recorded.
const TOLERATED: Duration = Duration::from_millis(150);
/// The loader's, of each further process.
const TOLERATED_MORE: Duration = Duration::from_millis(5);

/// What is missing of what was used.
#[derive(Clone, Copy, Debug)]
pub struct Missing {
    missing: Duration,
    used: Duration,
}

impl Missing {
    /// `None`: hardly any. `processes`: how many there were.
    pub fn of(used: Duration, recorded: Duration, processes: u32) -> Option<Missing> {
        let missing = used.checked_sub(recorded)?;
        let tolerated = TOLERATED + processes.saturating_sub(1) * TOLERATED_MORE;
        (missing > tolerated && missing > used / 20).then_some(Missing { missing, used })
    }

    /// What was used, if hardly any of it is there.
    pub fn of_all(&self) -> Option<Duration> {
        (self.missing > self.used * 9 / 10).then_some(self.used)
    }

    /// Prints it.
    pub fn report(&self, of: &str, next: &str, talk: Talk) {
        let (missing, used) = (self.missing.as_secs_f64(), self.used.as_secs_f64());
        if talk != Talk::Quiet {
            say(format_args!(
                "swipr: {missing:.1} of {used:.1} s of {of} CPU time are not in the recording\nnext: {next}"
            ));
        }
    }
}
