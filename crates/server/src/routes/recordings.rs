//! Routes that are answered with a recording.

use super::parameters::Defaults;
use super::sample_request;
use super::{Empty, File, Outcome, ResponseOptions, RouteContext};
use crate::proto::answer::Answer;
use crate::recording::{Length, Request, ShownFrames, WriterTask};
use std::time::Duration;
use swipr_formats::model::Mode;

/// As long as recordings are unless something else is said.
pub(super) const STANDARD: Duration = Duration::from_secs(30);

/// The format that each path's file has.
const NAMED: &[(&str, &str)] = &[
    ("/flamegraph.html", "html"),
    ("/flamegraph.svg", "svg"),
    ("/profile.json", "firefox"),
    ("/profile.speedscope.json", "speedscope"),
    ("/profile.pb.gz", "pprof"),
    ("/profile.folded", "folded"),
    ("/profile.perf", "perf"),
];

impl RouteContext<'_> {
    /// A recording of wall-clock time, in that format, unless the request says something else.
    fn request(&mut self, length: Length, format: &'static str) -> Result<Box<Request>, Answer> {
        let params = std::mem::take(&mut self.params);
        let request = params.into_request(Defaults { length, mode: Mode::Wall, format });
        request.map(Box::new).map_err(|what| self.wrong(what))
    }

    fn record(mut self, length: Length, format: &'static str) -> Result<Outcome, Answer> {
        Ok(Outcome::Record(self.request(length, format)?, ResponseOptions::default()))
    }
}

pub(super) fn sample(asked: RouteContext<'_>) -> Result<Outcome, Answer> {
    let request = sample_request::parse(asked.body).map_err(|what| asked.wrong(what))?;
    Ok(Outcome::Record(Box::new(request), ResponseOptions::default()))
}

pub(super) fn profile(asked: RouteContext<'_>) -> Result<Outcome, Answer> {
    asked.record(Length::Time(STANDARD), "perf")
}

pub(super) fn named(asked: RouteContext<'_>) -> Result<Outcome, Answer> {
    let found = NAMED.iter().find(|(path, _)| *path == asked.path);
    let format = found.map_or("perf", |(_, format)| format);
    asked.record(Length::Time(STANDARD), format)
}

pub(super) fn dump(asked: RouteContext<'_>) -> Result<Outcome, Answer> {
    if let Some(format) = asked.params.format.filter(|format| !["dump", "json"].contains(&format.name)) {
        return Err(asked.wrong(format!("format: \"{}\" is not one of dump, json", format.name)));
    }
    asked.record(Length::Ticks(1), "dump")
}

pub(super) fn threads(mut asked: RouteContext<'_>) -> Result<Outcome, Answer> {
    let mut request = asked.request(Length::Ticks(1), "json")?;
    request.format.format = &swipr_formats::THREADS;
    Ok(Outcome::Record(request, ResponseOptions { file: File::None, ..ResponseOptions::default() }))
}

pub(super) fn last(mut asked: RouteContext<'_>) -> Result<Outcome, Answer> {
    let mut request = asked.request(Length::Time(STANDARD), "perf")?;
    if request.frames == ShownFrames::Native {
        return Err(Answer::problem(
            400,
            "frames: what /last keeps is merged, and can be shown so or as interpreter",
        ));
    }
    if let Length::Time(time) = request.length {
        request.purpose = WriterTask::Last(time);
    }
    Ok(Outcome::Record(request, ResponseOptions::default()))
}

pub(super) fn live(mut asked: RouteContext<'_>) -> Result<Outcome, Answer> {
    let mut request = asked.request(Length::Time(STANDARD), "json")?;
    request.format.format = &swipr_formats::LIVE_LINES;
    Ok(Outcome::Record(request, ResponseOptions { file: File::None, empty: Empty::IsFine }))
}

pub(super) fn maps(mut asked: RouteContext<'_>) -> Result<Outcome, Answer> {
    let mut request = asked.request(Length::Ticks(1), "json")?;
    request.format.format = &swipr_formats::GOROUTINES;
    request.purpose = WriterTask::Code;
    Ok(Outcome::Record(request, ResponseOptions { file: File::None, empty: Empty::IsFine }))
}
