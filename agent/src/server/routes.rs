//! The one list of routes, and what each does with a request.
//!
//! The help, 404's text, 405's `Allow` and the table in `docs/http.md` are made from
//! it. Not here: reading requests, writing answers, who may ask.

use super::answer::{Answer, EXAMPLE, METRICS};
use super::head::{Head, Method};
use super::help;
use super::parameters::{Defaults, Wish};
use super::percent;
use super::sample_request;
use crate::listen::Address;
use crate::recording::{Length, Recorder, Request};
use std::time::Duration;

/// A route.
#[derive(Clone, Copy, Debug)]
pub(super) struct Route {
    pub(super) method: Method,
    pub(super) paths: &'static [&'static str],
    pub(super) does: &'static str,
    /// Names of parameters that its query takes.
    pub(super) parameters: &'static [&'static str],
    action: Action,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    Help,
    Sample,
    Profile,
    Dump,
    Health,
    Status,
    Metrics,
}

/// Every route. Those for GET answer HEAD too.
pub(super) static ROUTES: &[Route] = &[
    Route { method: Method::Get, paths: &["/"], does: "this help", parameters: &[], action: Action::Help },
    Route {
        method: Method::Post,
        paths: &["/", "/sample", "/samples"],
        does: "a recording, asked for with swift-profile-recorder's JSON",
        parameters: &[],
        action: Action::Sample,
    },
    Route {
        method: Method::Get,
        paths: &["/profile"],
        does: "a recording",
        parameters: &[
            "seconds",
            "samples",
            "hz",
            "rate",
            "interval",
            "mode",
            "format",
            "threads",
            "names",
            "lines",
            "inline",
            "max_depth",
            "title",
            "merge_threads",
            "weight",
            "states",
            "compat",
            "symbolizer",
            "symbolize",
        ],
        action: Action::Profile,
    },
    Route {
        method: Method::Get,
        paths: &["/dump"],
        does: "every thread's stack now, as text or with format=json",
        parameters: &[
            "format",
            "threads",
            "names",
            "lines",
            "inline",
            "max_depth",
            "title",
            "symbolizer",
            "symbolize",
        ],
        action: Action::Dump,
    },
    Route {
        method: Method::Get,
        paths: &["/health"],
        does: "OK, or why the agent has turned itself off",
        parameters: &[],
        action: Action::Health,
    },
    Route {
        method: Method::Get,
        paths: &["/status"],
        does: "the agent's state as JSON",
        parameters: &[],
        action: Action::Status,
    },
    Route {
        method: Method::Get,
        paths: &["/metrics"],
        does: "the figures of /status for Prometheus",
        parameters: &[],
        action: Action::Metrics,
    },
];

/// What becomes of a request.
#[derive(Debug)]
pub(super) enum Outcome {
    /// It is answered at once.
    Answer(Answer),
    /// A recording is to be made.
    Record(Box<Request>),
}

/// Finds the route of a request and follows it.
pub(super) fn follow(head: &Head, body: &[u8], recorder: &dyn Recorder, address: &Address) -> Outcome {
    match try_follow(head, body, recorder, address) {
        Ok(outcome) => outcome,
        Err(answer) => Outcome::Answer(answer),
    }
}

fn try_follow(
    head: &Head,
    body: &[u8],
    recorder: &dyn Recorder,
    address: &Address,
) -> Result<Outcome, Answer> {
    let path = head.path.as_str();
    let there = || ROUTES.iter().filter(|route| route.paths.contains(&path));
    if there().next().is_none() {
        let what = format!("there is no {path} here");
        return Err(Answer::problem(404, what).example(help::text(address)));
    }
    let Some(route) = there().find(|route| route.takes(head.method)) else {
        let allowed = allow(there());
        let what = format!("{path} takes {allowed} only");
        let answer = Answer::problem(405, what).header("Allow", allowed);
        return Err(answer.example(example(path, address)));
    };
    let wrong = |what: String| Answer::problem(400, what).example(example(path, address));
    let query = percent::query(&head.query)
        .map_err(|piece| wrong(format!("\"{piece}\" in the query is not percent-encoded UTF-8")))?;
    let mut wish = Wish::default();
    for (name, value) in &query {
        if name == super::access::TOKEN_PARAMETER {
            continue;
        }
        if !route.parameters.contains(&name.as_str()) {
            let known = match route.parameters {
                [] => "none".to_owned(),
                names => names.join(", "),
            };
            return Err(wrong(format!("\"{name}\" is not a parameter of {path}, which knows {known}")));
        }
        wish.set(name, value).map_err(|what| wrong(format!("{name}: {what}")))?;
    }
    let answer = match route.action {
        Action::Help => Answer::text(help::text(address)),
        Action::Health => match recorder.off() {
            None => Answer::text("OK\n"),
            Some(reason) => off(reason),
        },
        Action::Status => Answer::json(recorder.status()),
        Action::Metrics => Answer::bytes(METRICS, recorder.metrics().into_bytes()),
        Action::Sample => {
            let request = sample_request::parse(body).map_err(wrong)?;
            return Ok(Outcome::Record(Box::new(request)));
        }
        Action::Profile => {
            let defaults = Defaults { length: Length::Time(Duration::from_secs(30)), format: "perf" };
            let request = wish.into_request(defaults).map_err(wrong)?;
            return Ok(Outcome::Record(Box::new(request)));
        }
        Action::Dump => {
            let defaults = Defaults { length: Length::Ticks(1), format: "dump" };
            let request = wish.into_request(defaults).map_err(wrong)?;
            let name = request.format.format.name;
            if !["dump", "json"].contains(&name) {
                return Err(wrong(format!("format: \"{name}\" is not one of dump, json")));
            }
            return Ok(Outcome::Record(Box::new(request)));
        }
    };
    Ok(Outcome::Answer(answer))
}

/// The agent has turned itself off.
pub(super) fn off(reason: &str) -> Answer {
    Answer::problem(503, format!("the agent has turned itself off: {reason}"))
}

impl Route {
    fn takes(&self, method: Method) -> bool {
        self.method == method || (self.method == Method::Get && method == Method::Head)
    }

    /// Its method as HTTP spells it.
    pub(super) fn method_name(&self) -> &'static str {
        match self.method {
            Method::Post => "POST",
            _ => "GET",
        }
    }
}

fn allow<'a>(routes: impl Iterator<Item = &'a Route>) -> String {
    let methods = routes.flat_map(|route| match route.method {
        Method::Get => &["GET", "HEAD"][..],
        _ => &["POST"][..],
    });
    methods.copied().collect::<Vec<_>>().join(", ")
}

/// A request for that path that is right.
pub(super) fn example(path: &str, address: &Address) -> String {
    let curl = |rest: &str| format!("{EXAMPLE}{}", help::curl(address, rest));
    match path {
        "/profile" => curl("/profile?seconds=5&hz=100&format=folded"),
        "/" | "/sample" | "/samples" => {
            format!("{} -d '{}'", curl(path), sample_request::EXAMPLE)
        }
        other => curl(other),
    }
}
