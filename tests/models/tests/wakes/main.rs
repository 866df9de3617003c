//! How threads of the agent's wake each other, and how a thread of the host's takes itself out, in
//! every order of events. The files are those of `os` and
//! `profiler`.

#[path = "../shared/atomic.rs"]
mod atomic;
#[path = "../../../../crates/os/src/linux/event.rs"]
mod event;
mod futex;
#[path = "../../../../crates/profiler/src/signal_exclusion/handshake.rs"]
mod handshake;
#[path = "../../../../crates/server/src/event_loop/poller/pending.rs"]
mod pending;

use atomic::{AtomicU8, AtomicU32};
use event::Event;
use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicU32 as Number, Ordering::Relaxed};
use loom::sync::{Arc, Condvar, Mutex};
use loom::thread;
use pending::Pending;
use std::time::Duration;

/// Longer than any wait: a thread that is not woken blocks for ever, and loom reports that.
const FOR_EVER: Duration = Duration::from_secs(1 << 20);

#[test]
fn who_waits_for_an_event_finds_what_was_there_when_it_was_set() {
    loom::model(|| {
        let (event, batches) = (Arc::new(Event::default()), Arc::new(Number::new(0)));
        let (setter, sent) = (event.clone(), batches.clone());
        let sampler = thread::spawn(move || {
            for batch in 1..=2 {
                sent.store(batch, Relaxed);
                setter.set();
            }
        });
        let last = event.wait_for(FOR_EVER, || Some(batches.load(Relaxed)).filter(|&batch| batch == 2));
        assert_eq!(last, Some(2));
        sampler.join().unwrap();
    });
}

/// Bytes on their way to a thread that waits for them.
#[derive(Default)]
struct Bytes {
    count: Mutex<u32>,
    came: Condvar,
}

impl Bytes {
    fn send(&self) -> bool {
        *self.count.lock().unwrap() += 1;
        self.came.notify_one();
        true
    }

    fn wait(&self) {
        let mut count = self.count.lock().unwrap();
        while *count == 0 {
            count = self.came.wait(count).unwrap();
        }
    }

    fn take(&self) {
        *self.count.lock().unwrap() = 0;
    }
}

#[test]
fn no_news_is_lost_when_two_wakes_are_one() {
    loom::model(|| {
        let (pending, bytes) = (Arc::new(Pending::default()), Arc::new(Bytes::default()));
        let news = Arc::new(Number::new(0));
        let (raises, sent, tells) = (pending.clone(), bytes.clone(), news.clone());
        let writer = thread::spawn(move || {
            for number in 1..=2 {
                tells.store(number, Relaxed);
                raises.raise(|| sent.send());
            }
        });
        while news.load(Relaxed) < 2 {
            bytes.wait();
            pending.lower(|| bytes.take());
        }
        writer.join().unwrap();
    });
}

#[test]
fn a_message_that_could_not_be_sent_does_not_keep_the_next_one_back() {
    loom::model(|| {
        let (pending, bytes) = (Arc::new(Pending::default()), Arc::new(Bytes::default()));
        pending.raise(|| false);
        let (other, sent) = (pending.clone(), bytes.clone());
        let writer = thread::spawn(move || other.raise(|| sent.send()));
        bytes.wait();
        pending.lower(|| bytes.take());
        writer.join().unwrap();
    });
}

#[test]
fn who_took_itself_out_is_asked_no_more_when_it_goes_on() {
    const TID: u32 = 7;
    const BIT: u8 = 4;
    loom::model(|| {
        let asked = Arc::new(AtomicU32::new(0));
        let byte = Arc::new(AtomicU8::new(0));
        // Written by the requesting thread, and by the thread behind its wait: loom finds both at
        // once.
        let question = Arc::new(UnsafeCell::new(0));
        let (asks, bits, sent) = (asked.clone(), byte.clone(), question.clone());
        let sampler = thread::spawn(move || {
            // SAFETY: nobody else does so meanwhile; loom sees to it.
            let ask = || sent.with_mut(|question| unsafe { *question = 1 });
            handshake::ask(&asks, TID, || handshake::is_out(&bits, BIT), ask);
        });
        handshake::set(&byte, BIT);
        handshake::wait_until_out(&asked, TID, || {
            thread::yield_now();
            true
        });
        // SAFETY: as above.
        question.with_mut(|question| unsafe { *question = 2 });
        sampler.join().unwrap();
    });
}
