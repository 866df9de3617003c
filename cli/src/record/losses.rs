//! What a recording has lost so far: the agent's figures, asked for while it runs. A recording's own figures come with
//! its end, and one that is cut short has none.

use crate::client::{Client, Status};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use swipr_formats::model::Summary;

/// How often the agent is asked.
const OFTEN: Duration = Duration::from_millis(500);

/// The figures before it began, and the last ones.
#[derive(Clone, Debug)]
pub struct Losses(Arc<Mutex<(Status, Status)>>);

impl Losses {
    /// What came since the recording began. Other recordings of the same process count as well.
    pub fn summary(&self) -> Summary {
        let (first, last) = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let since = |of: fn(&Status) -> u64| of(&last).saturating_sub(of(&first));
        Summary {
            ticks: since(|status| status.ticks.taken),
            late: since(|status| status.ticks.late),
            truncated: since(|status| status.samples.truncated),
            missed: since(|status| status.samples.missed),
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
        let both = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        both.1.samples.taken.saturating_sub(both.0.samples.taken)
    }

    fn look(&self, client: &Client) -> bool {
        let Ok(status) = client.status() else { return false };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).1 = status;
        true
    }
}

/// Asks from a thread of its own until it is dropped.
#[derive(Debug)]
pub struct Watch {
    losses: Losses,
    /// Dropped: the thread ends. A message: look now, and say when it is done.
    commands: SyncSender<SyncSender<()>>,
}

impl Watch {
    /// `before`: what the agent said before the recording began. Returns at once: a process that does not answer
    /// holds up nobody.
    pub fn start(client: Client, before: Status) -> Watch {
        let losses = Losses(Arc::new(Mutex::new((before.clone(), before))));
        let (commands, received) = sync_channel::<SyncSender<()>>(1);
        let own = losses.clone();
        std::thread::spawn(move || {
            let mut answers = true;
            while answers {
                match received.recv_timeout(OFTEN) {
                    Ok(done) => {
                        answers = own.look(&client);
                        let _ = done.try_send(());
                    }
                    Err(RecvTimeoutError::Timeout) => answers = own.look(&client),
                    Err(RecvTimeoutError::Disconnected) => return,
                }
            }
        });
        Watch { losses, commands }
    }

    /// The figures.
    pub fn losses(&self) -> Losses {
        self.losses.clone()
    }

    /// Asks now, and waits for the answer, but not longer.
    pub fn look_once_more(&self, patience: Duration) {
        let (done, is_done) = sync_channel(1);
        if self.commands.try_send(done).is_ok() {
            let _ = is_done.recv_timeout(patience);
        }
    }
}
