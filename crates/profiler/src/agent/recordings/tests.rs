use super::*;
use crate::config::Config;
use crate::writer::AddressRecorder;
use std::sync::Barrier;
use std::time::Duration;
use swipr_formats::model::{Header, Mode, Summary};
use swipr_server::recording::Closed;

/// A client that does not read.
struct Deaf(Arc<Barrier>);

impl Output for Deaf {
    fn write(&mut self, _: &[u8]) -> Result<(), Closed> {
        self.0.wait();
        Ok(())
    }

    fn is_closed(&self) -> bool {
        false
    }

    fn takes_empty(&self) -> bool {
        true
    }

    fn finish(self: Box<Self>, _: Result<Summary, String>) {}
}

fn last() -> Request {
    Request {
        interval: Duration::from_millis(10),
        length: swipr_server::recording::Length::Open,
        mode: Mode::Wall,
        source: Default::default(),
        format: swipr_formats::Selection {
            format: swipr_formats::find("perf").unwrap(),
            options: Default::default(),
        },
        threads: None,
        filter: Default::default(),
        purpose: WriterTask::Last(Duration::from_secs(10)),
        symbolize: Default::default(),
        frames: Default::default(),
        id: None,
    }
}

/// Regression: each client of `/last` got a thread, without limit: 51 threads, more than the
/// list of the agent's own threads had room for.
#[test]
fn what_was_kept_is_written_for_so_many_clients_as_may_record() {
    let agent = Arc::new(Agent::new(&Config::default()));
    let header = Header {
        pid: 1,
        process_name: "x".into(),
        executable: "/x".into(),
        start_ns: 0,
        interval_ns: 10_000_000,
        mode: Mode::Wall,
        measure: None,
    };
    *agent.flight_recorder.lock().unwrap() =
        Some(AddressRecorder::new(header, Duration::from_secs(1), EpochClock::now()));
    let all_write = Arc::new(Barrier::new(MAX_RECORDINGS + 1));
    let ask = || agent.begin(last(), Box::new(Deaf(all_write.clone())), Arc::default());
    for _ in 0..MAX_RECORDINGS {
        assert!(ask().is_ok());
    }
    assert!(matches!(ask(), Err((StartError::TooMany, _))));
    all_write.wait();
    while agent.recorded().0 > 0 {
        std::thread::yield_now();
    }
}

/// How a recording ended.
struct End(std::sync::mpsc::Sender<Result<Summary, String>>);

impl Output for End {
    fn write(&mut self, _: &[u8]) -> Result<(), Closed> {
        Ok(())
    }

    fn is_closed(&self) -> bool {
        false
    }

    fn finish(self: Box<Self>, end: Result<Summary, String>) {
        self.0.send(end).unwrap();
    }
}

/// Regression: nobody took it any more, and its caller waited for two minutes.
#[test]
fn a_recording_that_is_submitted_to_an_agent_that_has_stopped_ends() {
    let agent = Arc::new(Agent::new(&Config::default()));
    agent.stop();
    let (sender, _ends) = std::sync::mpsc::channel();
    assert_eq!(agent.submit(last(), Box::new(End(sender)), Arc::default()), Err(StartError::Stopping));
}

/// Regression: it was accepted, and its caller learned at its end that there was none.
#[test]
fn one_recording_too_many_is_refused_when_it_is_submitted() {
    let agent = Arc::new(Agent::new(&Config::default()));
    let (sender, ends) = std::sync::mpsc::channel();
    let submit = || agent.submit(last(), Box::new(End(sender.clone())), Arc::default());
    for _ in 0..MAX_RECORDINGS {
        assert_eq!(submit(), Ok(()));
    }
    assert_eq!(submit(), Err(StartError::TooMany));
    assert_eq!(agent.recorded().0, MAX_RECORDINGS);
    // Those that were never started leave their places.
    agent.stop();
    assert!((0..MAX_RECORDINGS).all(|_| ends.try_recv().unwrap().is_err()));
    assert_eq!(agent.recorded().0, 0);
}
