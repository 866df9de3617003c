//! A symbol server for Firefox Profiler (`crates/symbols/src/symbol_api.rs`): answers questions
//! about the code of this process, and about its instructions.
//!
//! Modules are those of the last recording. Addresses are those that swipr's profiles have: offsets
//! in the module's file. A thread of its own answers. It ends, and drops what it has read, a minute
//! after the last question. Not here: authorization (`routes/page.rs`).

mod assembly;
mod modules;

use crate::channel::Receiver;
use crate::writer::NameSources;
use modules::Modules;
use serde_json::Value;
use std::time::Duration;
use swipr_formats::model::Summary;
use swipr_os::locks::lock;
use swipr_server::recording::{Question, QuestionKind};
use swipr_symbols::symbol_api;

/// Questions that may wait; one more is refused.
pub const MAX_WAITING: usize = 16;
/// How long the thread waits for another question.
const LINGER: Duration = Duration::from_secs(60);

/// The thread's body: runs until no question has come for a while. Then `none_left` returns a
/// question that has come just now, or `None`: the thread ends.
pub fn run(questions: &Receiver<Question>, names: &NameSources, none_left: impl Fn() -> Option<Question>) {
    while let Some(question) = questions.receive(LINGER).ok().or_else(&none_left) {
        let Question { kind, body, mut output } = question;
        let text = answer(kind, &body, names).to_string();
        let written = output.write(text.as_bytes());
        output.finish(match written {
            Ok(()) => Ok(Summary::default()),
            Err(_) => Err("the client is gone".into()),
        });
    }
}

/// The answer to a question; what cannot be answered is `{"error": …}`.
pub fn answer(kind: QuestionKind, body: &[u8], names: &NameSources) -> Value {
    let wrong = |what: &str| serde_json::json!({ "error": what });
    let Ok(question) = serde_json::from_slice::<Value>(body) else { return wrong("the question is no JSON") };
    let Some(mappings) = lock(&names.latest).and_then(|latest| latest.clone()) else {
        return wrong("nothing was recorded yet");
    };
    let modules = Modules::new(&mappings, names);
    let answer = match kind {
        QuestionKind::Symbolicate => symbol_api::symbolicate(&question, &modules),
        QuestionKind::Source => symbol_api::source(&question, &modules),
        QuestionKind::Assembly => assembly::answer(&question, &modules),
    };
    answer.unwrap_or_else(|what| wrong(&what))
}
