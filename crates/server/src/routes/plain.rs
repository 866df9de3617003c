//! Routes that are answered at once.

use super::help;
use super::{Outcome, RouteContext, off};
use crate::proto::answer::{Answer, METRICS};

pub(super) fn help(asked: RouteContext<'_>) -> Result<Outcome, Answer> {
    if asked.wants_page {
        // No other page may have it in a frame.
        let policy = format!("{}; frame-ancestors 'none'", swipr_formats::LIVE_POLICY);
        let page = Answer::bytes("text/html; charset=utf-8", swipr_formats::live_page().into_bytes());
        let page = page.header("Content-Security-Policy", policy).header("Referrer-Policy", "no-referrer");
        return Ok(Outcome::Answer(page.header("Vary", "Accept")));
    }
    Ok(Outcome::Answer(Answer::text(help::text(asked.address, asked.recorder))))
}

pub(super) fn health(asked: RouteContext<'_>) -> Result<Outcome, Answer> {
    Ok(Outcome::Answer(match asked.recorder.off() {
        None => Answer::text("OK\n"),
        Some(reason) => off(reason),
    }))
}

pub(super) fn stop(asked: RouteContext<'_>) -> Result<Outcome, Answer> {
    if !asked.body.trim_ascii().is_empty() {
        return Err(asked.wrong("/stop takes no body, but `?id=…`".to_owned()));
    }
    let id = asked.params.id.as_deref();
    match (asked.recorder.stop(id), id) {
        (0, Some(id)) => Err(Answer::problem(404, format!("no recording with the id {id} runs"))),
        (0, None) => Err(Answer::problem(404, "no recording of a client without an id runs")),
        (count, _) => {
            let what = if count == 1 { "recording ends" } else { "recordings end" };
            Ok(Outcome::Answer(Answer::text(format!("{count} {what}\n"))))
        }
    }
}

pub(super) fn status(asked: RouteContext<'_>) -> Result<Outcome, Answer> {
    Ok(Outcome::Answer(Answer::json(asked.recorder.status())))
}

pub(super) fn metrics(asked: RouteContext<'_>) -> Result<Outcome, Answer> {
    Ok(Outcome::Answer(Answer::bytes(METRICS, asked.recorder.metrics().into_bytes())))
}
