//! What a recording has lost so far: the agent's figures, requested while it runs. A recording's
//! own figures come with its end; a recording that is cut short has none.

use crate::client::{Client, Status};
use crate::threads;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use swipr_formats::model::Summary;

/// How often the figures are requested.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Older figures are not those of a recording's end.
const RECENT: Duration = Duration::from_secs(1);

/// The figures before it began, and the last ones.
#[derive(Clone, Debug)]
pub struct Losses(Arc<Mutex<Statuses>>);

#[derive(Clone, Debug)]
struct Statuses {
    first: Status,
    last: Status,
    /// When the agent said the last; none: only before the recording.
    at: Option<Instant>,
}

impl Losses {
    /// What came since the recording began. Other recordings of the same process count as well.
    pub fn summary(&self) -> Summary {
        let Statuses { first, last, at } = self.statuses().clone();
        let since = |of: fn(&Status) -> u64| of(&last).saturating_sub(of(&first));
        Summary {
            uncounted: u64::from(at.is_none_or(|at| at.elapsed() > RECENT)),
            ticks: since(|status| status.ticks.taken),
            late: since(|status| status.ticks.late),
            truncated: since(|status| status.samples.truncated),
            dropped: since(|status| status.samples.dropped),
            filled: since(|status| status.samples.filled),
            inferred: since(|status| status.samples.inferred),
            unsampled_cpu_ns: since(|status| status.samples.unsampled_cpu_ns),
            cpu_wait_ns: since(|status| status.samples.cpu_wait_ns),
            ..Summary::default()
        }
    }

    /// How many samples were taken.
    pub fn taken(&self) -> u64 {
        let statuses = self.statuses();
        statuses.last.samples.taken.saturating_sub(statuses.first.samples.taken)
    }

    /// The CPU time of the agent's own threads, when it was asked last.
    pub fn agent_cpu_ns(&self) -> u64 {
        self.statuses().last.agent_cpu_ns
    }

    /// Why threads that ran could not be sampled, and what to do, if the agent said.
    pub fn hindrance(&self) -> Option<(String, &'static str)> {
        self.statuses().last.hindrance()
    }

    /// Why the functions of the program's language are missing, if it has one.
    pub fn unread(&self) -> Option<String> {
        self.statuses().last.unread()
    }

    fn statuses(&self) -> MutexGuard<'_, Statuses> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn poll(&self, client: &Client) -> bool {
        let Ok(status) = client.status() else { return false };
        let mut statuses = self.statuses();
        (statuses.last, statuses.at) = (status, Some(Instant::now()));
        true
    }
}

/// Asks from a thread of its own until it is dropped.
#[derive(Debug)]
pub struct Watch {
    losses: Losses,
    /// Dropped: the thread ends.
    _end: Sender<()>,
}

impl Watch {
    /// `before`: the agent's status before the recording began. Returns at once: a process that
    /// does not answer delays nothing else. Without a thread for it nothing is known.
    pub fn start(client: Client, before: Status) -> Watch {
        let statuses = Statuses { first: before.clone(), last: before, at: None };
        let losses = Losses(Arc::new(Mutex::new(statuses)));
        let (end, ends) = channel::<()>();
        let own = losses.clone();
        let _ = threads::start(move || {
            while ends.recv_timeout(POLL_INTERVAL) == Err(RecvTimeoutError::Timeout) && own.poll(&client) {}
        });
        Watch { losses, _end: end }
    }

    /// The figures.
    pub fn losses(&self) -> Losses {
        self.losses.clone()
    }
}
