//! The queue from the sampler to a writer and the pipe from there to the server, in every order of events.

use loom::sync::{Condvar, Mutex};
use loom::thread;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;
use swipr_formats::model::{State, Summary, Thread};
use swipr_models::pipe::{PipeReader, PipeWriter, pipe};
use swipr_models::recording::{Closed, Output};
use swipr_models::sample_queue::sample_queue;
use swipr_models::sampler::{Batch, Event};
use swipr_models::stack::RawStack;
use swipr_unwind::frames::{CAPACITY, Storage};
use swipr_unwind::walk::Stop;

/// Where the server sleeps.
struct Waker {
    is_woken: Mutex<bool>,
    rouse: Condvar,
}

fn pipe_of(capacity: usize) -> (PipeWriter, PipeReader, Arc<Waker>) {
    let waker = Arc::new(Waker { is_woken: Mutex::new(false), rouse: Condvar::new() });
    let woken = waker.clone();
    let wake = move || {
        *woken.is_woken.lock().unwrap() = true;
        woken.rouse.notify_one();
    };
    let (writer, reader) = pipe(capacity, Arc::new(wake));
    (writer, reader, waker)
}

impl Waker {
    fn sleep(&self) {
        let mut is_woken = self.is_woken.lock().unwrap();
        while !*is_woken {
            is_woken = self.rouse.wait(is_woken).unwrap();
        }
        *is_woken = false;
    }
}

#[test]
fn a_reader_that_sleeps_until_it_is_woken_gets_every_byte_and_the_end() {
    let mut model = loom::model::Builder::new();
    // All orders of so many locks would take hours: those in which a thread is interrupted so often at most.
    model.preemption_bound = Some(2);
    model.check(|| {
        let (mut writer, mut reader, waker) = pipe_of(2);
        let thread = thread::spawn(move || {
            writer.write(b"abc").unwrap();
            Box::new(writer).finish(Ok(Summary::default()));
        });
        let mut bytes = Vec::new();
        let end = loop {
            waker.sleep();
            while reader.take(&mut bytes, 2) > 0 {}
            if let Some(end) = reader.end() {
                break end;
            }
        };
        thread.join().unwrap();
        assert_eq!((&bytes[..], end), (&b"abc"[..], Ok(Summary::default())));
    });
}

#[test]
fn a_writer_never_waits_for_a_reader_that_goes_away() {
    loom::model(|| {
        let (mut writer, reader, _) = pipe_of(1);
        let thread = thread::spawn(move || writer.write(b"ab"));
        drop(reader);
        assert_eq!(thread.join().unwrap(), Err(Closed));
    });
}

/// One sample, whose time is its number.
fn batch(number: u64) -> Batch {
    let storage: Box<Storage> = Box::new([const { AtomicU64::new(0) }; CAPACITY]);
    let stack = Arc::new(RawStack::new(&storage, 10, Stop::Root, &Arc::default()));
    let thread = Arc::new(Thread { tid: 1, name: "t".into() });
    vec![Event { thread, state: State::Running, time_ns: number, ticks: 1, weight_ns: 0, stack }]
}

#[test]
fn a_queue_gives_what_it_took_in_order_and_takes_again_when_it_is_empty() {
    loom::model(|| {
        // Any batch is more than that: one waits at a time.
        let (sender, receiver) = sample_queue(1);
        let sender = Arc::new(sender);
        let other = sender.clone();
        let thread =
            thread::spawn(move || (0..2).filter(|&number| other.send(batch(number)).is_ok()).count());
        let mut received = Vec::new();
        let mut receive = || {
            if let Ok(batch) = receiver.receive(Duration::ZERO) {
                received.push(batch[0].time_ns);
            }
        };
        receive();
        let sent = thread.join().unwrap();
        (0..2).for_each(|_| receive());
        assert_eq!(sender.send(batch(2)), Ok(()), "nothing waits");
        receive();
        assert!(received.is_sorted(), "{received:?}");
        assert_eq!(received.len(), sent + 1);
    });
}
