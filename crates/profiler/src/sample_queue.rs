//! From the sampler to a recording's writer: a queue bounded in bytes, whose sender never waits.
//!
//! The bound is on memory, not on sweeps: finding the first names of a large program takes the
//! writer a second or two, and what is sampled meanwhile fits.

pub use crate::channel::Refused;
use crate::channel::{Receiver, Sender, channel};
use crate::stack::RawStack;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;
use swipr_formats::model::{State, Thread};
use swipr_os::disabled;

/// Memory that the samples of one recording may take while they wait for their writer.
pub const QUEUE_BYTES: usize = 16 << 20;

/// How often a writer that waits only for the end checks whether the agent is disabled.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// One sample on its way to the writer.
#[derive(Clone, Debug)]
pub struct Event {
    /// The thread.
    pub thread: Arc<Thread>,
    /// What the thread was doing.
    pub state: State,
    /// Nanoseconds since the epoch; of the last tick.
    pub time_ns: u64,
    /// How many ticks in a row; each is a sample.
    pub ticks: u32,
    /// What a tick represents, nanoseconds.
    pub weight_ns: u64,
    /// The stack.
    pub stack: Arc<RawStack>,
}

/// What one sweep found.
pub type Batch = Vec<Event>;

/// The sampler's end.
#[derive(Debug)]
pub struct SampleSender {
    sender: Sender<(Batch, usize)>,
    state: Arc<QueueState>,
    capacity: usize,
}

/// The writer's end.
#[derive(Debug)]
pub struct SampleReceiver {
    receiver: Receiver<(Batch, usize)>,
    state: Arc<QueueState>,
}

#[derive(Debug, Default)]
struct QueueState {
    /// Bytes of the batches that wait.
    waiting: AtomicUsize,
    /// No batch is of use any more.
    is_unread: AtomicBool,
}

/// A queue of at most `capacity` bytes (and one batch).
pub fn sample_queue(capacity: usize) -> (SampleSender, SampleReceiver) {
    let (sender, receiver) = channel(usize::MAX);
    let state = Arc::<QueueState>::default();
    (SampleSender { sender, state: state.clone(), capacity }, SampleReceiver { receiver, state })
}

impl SampleSender {
    /// Hands a batch over, or drops it.
    pub fn send(&self, batch: Batch) -> Result<(), Refused> {
        // Relaxed: a bound, not a hand-over; the channel orders the batches themselves.
        if self.state.waiting.load(Relaxed) > self.capacity {
            return Err(Refused::Full);
        }
        let bytes = batch.iter().map(bytes_of).sum();
        self.state.waiting.fetch_add(bytes, Relaxed);
        let sent = self.sender.send((batch, bytes));
        if sent == Err(Refused::Gone) {
            self.state.is_unread.store(true, Relaxed);
        }
        sent
    }

    /// Whether the writer is done: further samples are of no use.
    pub fn is_unread(&self) -> bool {
        // Relaxed: noticed at the next tick is soon enough.
        self.state.is_unread.load(Relaxed)
    }
}

impl SampleReceiver {
    /// The next batch, waited for at most so long.
    pub fn receive(&self, at_most: Duration) -> Result<Batch, RecvTimeoutError> {
        let (batch, bytes) = self.receiver.receive(at_most)?;
        self.state.waiting.fetch_sub(bytes, Relaxed);
        Ok(batch)
    }

    /// The writer is done.
    pub fn leave_unread(&self) {
        // Relaxed: see `SampleSender::is_unread`.
        self.state.is_unread.store(true, Relaxed);
    }

    /// Throws away what still comes, until the sampler has dropped the recording or the agent is
    /// disabled.
    pub fn drain(&self) {
        while !disabled::is_disabled()
            && !matches!(self.receive(POLL_INTERVAL), Err(RecvTimeoutError::Disconnected))
        {}
    }
}

/// What an event keeps alive. A blocked thread's stack is shared by its samples and by the thread
/// itself.
fn bytes_of(event: &Event) -> usize {
    let sharers = Arc::strong_count(&event.stack).saturating_sub(1).max(1);
    size_of::<Event>() + event.stack.bytes() / sharers
}

#[cfg(test)]
mod tests {
    use super::*;
    use swipr_unwind::frames::Storage;
    use swipr_unwind::walk::Stop;

    fn batch(frames: usize) -> Batch {
        let storage: Box<Storage> = Box::new([const { std::sync::atomic::AtomicU64::new(0) }; 1024]);
        let stack =
            Arc::new(RawStack::new(&storage, frames, Stop::Root, &Arc::default(), Default::default()));
        let thread = Arc::new(Thread { tid: 1, name: "t".into() });
        vec![Event { thread, state: State::Running, time_ns: 0, ticks: 1, weight_ns: 0, stack }]
    }

    #[test]
    fn a_writer_that_is_behind_is_refused_samples_until_it_has_taken_some() {
        let (sender, receiver) = sample_queue(10_000);
        assert_eq!(sender.send(batch(1000)), Ok(()));
        assert_eq!(sender.send(batch(1000)), Ok(()));
        assert_eq!(sender.send(batch(1)), Err(Refused::Full));
        assert_eq!(receiver.receive(Duration::ZERO).unwrap().len(), 1);
        assert_eq!(sender.send(batch(1)), Ok(()));
        drop(receiver);
        assert_eq!(sender.send(batch(1)), Err(Refused::Gone));
    }

    #[test]
    fn who_waits_is_woken_by_a_batch_and_by_the_end() {
        let (sender, receiver) = sample_queue(10_000);
        assert!(matches!(receiver.receive(Duration::ZERO), Err(RecvTimeoutError::Timeout)));
        std::thread::scope(|scope| {
            scope.spawn(move || sender.send(batch(1)));
            assert_eq!(receiver.receive(Duration::from_secs(60)).map(|batch| batch.len()), Ok(1));
            let end = receiver.receive(Duration::from_secs(60)).map(|batch| batch.len());
            assert_eq!(end, Err(RecvTimeoutError::Disconnected));
        });
    }

    #[test]
    fn a_stack_that_many_samples_share_is_not_counted_for_each() {
        let (sender, _receiver) = sample_queue(30_000);
        let batch = batch(1000);
        let sent = (0..1000).take_while(|_| sender.send(batch.clone()).is_ok()).count();
        assert!((10..100).contains(&sent), "{sent}");
    }
}
