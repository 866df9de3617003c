//! From the sampler to a recording's writer: a queue bounded in bytes, whose sender never waits.
//!
//! The bound is on memory, not on sweeps: finding the first names of a large program takes the writer a
//! second or two, and what is sampled meanwhile fits.

use crate::platform::bell::Bell;
use crate::sampler::{Batch, Event};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::time::Duration;

/// Memory that the samples of one recording may take while they wait for their writer.
pub const QUEUE_BYTES: usize = 16 << 20;

/// Why a batch was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The writer is behind.
    Full,
    /// There is no writer any more.
    Gone,
}

/// The sampler's end. Its parts are dropped in this order: the bell rings when the sender is gone.
#[derive(Debug)]
pub struct SampleSender {
    sender: Sender<(Batch, usize)>,
    waiting: Arc<AtomicUsize>,
    capacity: usize,
    came: OnDrop,
}

/// Rings, for a batch or for the end of the sender.
#[derive(Debug)]
struct OnDrop(Arc<Bell>);

impl Drop for OnDrop {
    fn drop(&mut self) {
        self.0.ring();
    }
}

/// The writer's end.
#[derive(Debug)]
pub struct SampleReceiver {
    receiver: Receiver<(Batch, usize)>,
    waiting: Arc<AtomicUsize>,
    came: Arc<Bell>,
}

/// A queue of at most `capacity` bytes (and one batch).
pub fn sample_queue(capacity: usize) -> (SampleSender, SampleReceiver) {
    let (sender, receiver) = channel();
    let waiting = Arc::<AtomicUsize>::default();
    let came = Arc::<Bell>::default();
    let rings = OnDrop(came.clone());
    (
        SampleSender { sender, waiting: waiting.clone(), capacity, came: rings },
        SampleReceiver { receiver, waiting, came },
    )
}

impl SampleSender {
    /// Hands a batch over, or drops it.
    pub fn send(&self, batch: Batch) -> Result<(), Refused> {
        // Relaxed: a bound, not a hand-over; the channel orders the batches themselves.
        if self.waiting.load(Relaxed) > self.capacity {
            return Err(Refused::Full);
        }
        let bytes = batch.iter().map(bytes_of).sum();
        self.waiting.fetch_add(bytes, Relaxed);
        self.sender.send((batch, bytes)).map_err(|_| Refused::Gone)?;
        self.came.0.ring();
        Ok(())
    }
}

impl SampleReceiver {
    /// The next batch, waited for at most so long.
    pub fn receive(&self, at_most: Duration) -> Result<Batch, RecvTimeoutError> {
        let (batch, bytes) = self
            .came
            .wait_for(at_most, || match self.receiver.try_recv() {
                Ok(found) => Some(Ok(found)),
                Err(TryRecvError::Disconnected) => Some(Err(RecvTimeoutError::Disconnected)),
                Err(TryRecvError::Empty) => None,
            })
            .unwrap_or(Err(RecvTimeoutError::Timeout))?;
        self.waiting.fetch_sub(bytes, Relaxed);
        Ok(batch)
    }
}

/// What an event keeps alive. A blocked thread's stack is shared by its samples and by the thread itself.
fn bytes_of(event: &Event) -> usize {
    let sharers = Arc::strong_count(&event.stack).saturating_sub(1).max(1);
    size_of::<Event>() + event.stack.bytes() / sharers
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stack::RawStack;
    use swipr_formats::model::{State, Thread};
    use swipr_unwind::frames::Storage;
    use swipr_unwind::walk::Stop;

    fn batch(frames: usize) -> Batch {
        let storage: Box<Storage> = Box::new([const { std::sync::atomic::AtomicU64::new(0) }; 1024]);
        let stack = Arc::new(RawStack::new(&storage, frames, Stop::Root, &Arc::default()));
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
        let shared = batch(1000);
        let sent = (0..1000).take_while(|_| sender.send(shared.clone()).is_ok()).count();
        assert!((10..100).contains(&sent), "{sent}");
    }
}
