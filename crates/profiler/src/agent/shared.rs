//! The agent as the server sees it.

use super::figures::Snapshot;
use super::{Agent, metrics, status};
use crate::{agent_threads, last_thread};
use std::sync::Arc;
use std::time::Duration;
use swipr_os::disabled;
use swipr_server::recording::{Output, Question, Recorder, Request, StartError};

/// The agent as the server sees it.
pub struct SharedAgent(pub Arc<Agent>);

impl Recorder for SharedAgent {
    fn start(&self, mut request: Request, output: Box<dyn Output>) -> Result<(), StartError> {
        request.id.get_or_insert_default();
        self.0.begin(request, output, Arc::default()).map_err(|(error, _)| error)
    }

    fn stop(&self, id: Option<&str>) -> usize {
        self.0.stop_recordings(id)
    }

    fn ask(&self, question: Question) -> Result<(), StartError> {
        self.0.ask(question)
    }

    fn live_page(&self) -> Option<String> {
        self.0.live_page.get().cloned()
    }

    fn not_listening(&self) -> &[String] {
        self.0.not_listening.get().map_or(&[], Vec::as_slice)
    }

    fn status(&self) -> String {
        #[cfg(feature = "fault-injection")]
        crate::injected::may_panic("server");
        format!("{}\n", status::json(&Snapshot::of(&self.0)))
    }

    fn metrics(&self) -> String {
        metrics::text(&Snapshot::of(&self.0))
    }

    fn off(&self) -> Option<&'static str> {
        disabled::reason()
    }

    fn poll_within(&self) -> Option<Duration> {
        last_thread::timeout()
    }

    fn poll(&self) {
        last_thread::check();
        agent_threads::keep_spare_if_wanted();
        self.0.start_submitted();
    }
}
