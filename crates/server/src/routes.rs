//! Routes: which there are (`routes/table.rs`), finding a request's, and following it.
//!
//! The help, 404's text, 405's `Allow` and the table in `docs/http.md` are made from the list. Not
//! here: what routes do (`routes/*.rs`), reading requests, writing answers, authorization.

mod children;
mod go;
mod help;
pub(crate) mod page;
pub(crate) mod parameters;
mod plain;
mod recordings;
pub(crate) mod sample_request;
mod table;
mod values;

use crate::listen::Address;
use crate::percent;
use crate::proto::answer::{Answer, EXAMPLE};
use crate::proto::head::{Head, Method};
use crate::recording::{Recorder, Request};
use parameters::RecordingParams;
pub(super) use table::ROUTES;

/// A route.
#[derive(Clone, Copy, Debug)]
pub(super) struct Route {
    pub(super) method: Method,
    pub(super) paths: &'static [&'static str],
    pub(super) does: &'static str,
    /// Names of parameters that its query takes.
    parameters: table::Parameters,
    pub(super) strictness: Strictness,
    action: Action,
}

/// What a route does with a request.
type Action = fn(RouteContext<'_>) -> Result<Outcome, Answer>;

/// What becomes of parameters that a route does not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Strictness {
    /// An error.
    Strict,
    /// Nothing: the clients are other projects' tools, which may send more.
    Go,
}

/// A request, for its route.
pub(super) struct RouteContext<'a> {
    path: &'a str,
    /// As it was sent.
    query: &'a str,
    body: &'a [u8],
    recorder: &'a dyn Recorder,
    address: &'a Address,
    wants_page: bool,
    strictness: Strictness,
    params: RecordingParams,
    /// Names and values that the list of parameters does not know.
    others: Vec<(String, String)>,
}

/// What becomes of a request.
#[derive(Debug)]
pub(super) enum Outcome {
    /// It is answered at once.
    Answer(Answer),
    /// A recording is to be made.
    Record(Box<Request>, ResponseOptions),
}

/// How a recording is sent as an answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct ResponseOptions {
    pub(super) file: File,
    pub(super) empty: Empty,
}

/// The name of the file that an answer is saved as.
#[derive(Clone, Copy, Debug)]
pub(super) enum File {
    /// None: the answer is to be shown.
    None,
    /// Process, id, time, and the format's suffix.
    OfProcess,
    /// This one.
    Named(&'static str),
}

/// How a recording that found nothing is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Empty {
    /// With an error that says why.
    IsTold,
    /// As any other: its body says why, or never has samples.
    IsFine,
}

impl Default for ResponseOptions {
    fn default() -> ResponseOptions {
        ResponseOptions { file: File::OfProcess, empty: Empty::IsTold }
    }
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
        return Err(Answer::problem(404, what).example(help::text(address, recorder)));
    }
    let Some(route) = there().find(|route| route.takes(head.method)) else {
        let allowed = allow(there());
        let what = format!("{path} takes {allowed} only");
        let answer = Answer::problem(405, what).header("Allow", allowed);
        return Err(answer.example(example(path, address)));
    };
    let (query, strictness, params, others) =
        (&head.query, route.strictness, RecordingParams::default(), Vec::new());
    let wants_page = head.wants_page;
    let mut asked =
        RouteContext { path, query, body, recorder, address, wants_page, strictness, params, others };
    asked.read_query(route)?;
    (route.action)(asked)
}

impl RouteContext<'_> {
    fn read_query(&mut self, route: &Route) -> Result<(), Answer> {
        let bad =
            |piece: String| self.wrong(format!("\"{piece}\" in the query is not percent-encoded UTF-8"));
        let query = match (percent::query(self.query), self.strictness) {
            (Ok(query), _) => query,
            (Err(_), Strictness::Go) => return Ok(()),
            (Err(piece), Strictness::Strict) => return Err(bad(piece)),
        };
        for (name, value) in query {
            if name == crate::auth::access::TOKEN_PARAMETER {
                continue;
            }
            if !route.takes_parameter(&name) {
                if self.strictness == Strictness::Go {
                    self.others.push((name, value));
                    continue;
                }
                let known = match route.parameters().collect::<Vec<_>>().join(", ") {
                    none if none.is_empty() => "none".to_owned(),
                    names => names,
                };
                let path = self.path;
                return Err(
                    self.wrong(format!("\"{name}\" is not a parameter of {path}, which knows {known}"))
                );
            }
            match self.params.set(&name, &value) {
                Ok(()) => {}
                // Go uses its default for a value that it cannot parse.
                Err(_) if self.strictness == Strictness::Go && name == "seconds" => {}
                Err(_) if !parameters::is_listed(&name) => self.others.push((name, value)),
                Err(what) => return Err(self.wrong(format!("{name}: {what}"))),
            }
        }
        Ok(())
    }

    /// An error for a request that is wrong.
    fn wrong(&self, what: String) -> Answer {
        let answer = Answer::problem(400, what);
        match self.strictness {
            Strictness::Strict => answer.example(example(self.path, self.address)),
            Strictness::Go => answer.header("X-Go-Pprof", "1"),
        }
    }

    /// The value of a parameter that only this route knows.
    fn other(&self, name: &str) -> Option<&str> {
        self.others.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str())
    }
}

/// Which form of errors a path's clients expect.
pub(super) fn strictness(path: &str) -> Strictness {
    let route = ROUTES.iter().find(|route| route.paths.contains(&path));
    route.map_or(Strictness::Strict, |route| route.strictness)
}

/// The answer if the agent is disabled.
pub(super) fn off(reason: &str) -> Answer {
    Answer::problem(503, format!("the agent has turned itself off: {reason}"))
}

impl Route {
    fn takes(&self, method: Method) -> bool {
        self.method == method || (self.method == Method::Get && method == Method::Head)
    }

    pub(super) fn takes_parameter(&self, name: &str) -> bool {
        self.parameters().any(|known| known == name)
    }

    /// Names of parameters that its query takes.
    pub(super) fn parameters(&self) -> impl Iterator<Item = &'static str> {
        self.parameters.iter().copied().flatten().copied()
    }

    /// Its method as HTTP spells it.
    pub(super) fn method_name(&self) -> &'static str {
        match self.method {
            Method::Post => "POST",
            _ => "GET",
        }
    }

    /// Its parameters, in a few words where they are many: for the documentation.
    #[cfg(test)]
    pub(super) fn parameter_words(&self) -> String {
        let code = |groups: &[&[&str]]| {
            let names = groups.iter().copied().flatten().map(|name| format!("`{name}`"));
            names.collect::<Vec<_>>().join(" ")
        };
        match self.parameters.strip_prefix(table::RECORDING) {
            Some(rest) if !self.paths.contains(&"/profile") => {
                let more = if rest.is_empty() { String::new() } else { format!(", {}", code(rest)) };
                format!("those of `/profile` but `format`{more}")
            }
            _ => code(self.parameters),
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
        other => {
            let is_post = ROUTES.iter().find(|route| route.paths.contains(&other));
            let is_post = is_post.is_some_and(|route| route.method == Method::Post);
            curl(other) + if is_post { " -X POST" } else { "" }
        }
    }
}
