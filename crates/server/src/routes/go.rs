//! The endpoints of Go's net/http/pprof, of fgprof and of gperftools, as their tools and scrapers
//! expect them.
//!
//! Profiles come with 200 also when they are empty, with the reason in a comment of the profile:
//! scrapers poll idle programs, too. Errors are one line, with `X-Go-Pprof: 1`. A query that Go
//! would not understand gets Go's defaults.

use super::parameters::Defaults;
use super::recordings::STANDARD;
use super::{Empty, File, Outcome, ResponseOptions, RouteContext};
use crate::proto::answer::Answer;
use crate::recording::{Length, Request, Symbolize, WriterTask};
use std::os::unix::ffi::OsStrExt;
use swipr_formats::model::Mode;
use swipr_formats::{FormatInfo, GOROUTINE_STACKS, GOROUTINES, GPERFTOOLS};

/// More addresses are not named in one answer.
const MAX_ADDRESSES: usize = 10_000;

fn manner(file: &'static str) -> ResponseOptions {
    ResponseOptions { file: File::Named(file), empty: Empty::IsFine }
}

impl RouteContext<'_> {
    fn for_go(&mut self, length: Length, mode: Mode, format: &'static str) -> Result<Box<Request>, Answer> {
        let params = std::mem::take(&mut self.params);
        let request = params.into_request(Defaults { length, mode, format });
        request.map(Box::new).map_err(|what| self.wrong(what))
    }

    fn moment(&mut self, format: &'static FormatInfo) -> Result<Box<Request>, Answer> {
        self.params.duration_ns = None;
        let mut request = self.for_go(Length::Ticks(1), Mode::Wall, "pprof")?;
        request.format.format = format;
        request.format.options.snapshot = true;
        Ok(request)
    }
}

pub(super) fn index(_: RouteContext<'_>) -> Result<Outcome, Answer> {
    const INDEX: &str = "<!DOCTYPE html><title>/debug/pprof/</title><h1>/debug/pprof/</h1><ul>\
        <li><a href=\"profile\">profile</a>: CPU time; ?seconds=30&amp;hz=100\
        <li><a href=\"goroutine?debug=1\">goroutine</a>: every thread now; <a href=\"goroutine?debug=2\">in full</a>\
        <li><a href=\"cmdline\">cmdline</a>: the program's arguments\
        <li><a href=\"symbol\">symbol</a>: names of addresses\
        <li><a href=\"/debug/fgprof\">/debug/fgprof</a>: wall-clock time</ul>\n";
    Ok(Outcome::Answer(Answer::bytes("text/html; charset=utf-8", INDEX.as_bytes().to_vec())))
}

pub(super) fn profile(mut asked: RouteContext<'_>) -> Result<Outcome, Answer> {
    Ok(Outcome::Record(asked.for_go(Length::Time(STANDARD), Mode::Cpu, "pprof")?, manner("profile")))
}

pub(super) fn unnamed_profile(mut asked: RouteContext<'_>) -> Result<Outcome, Answer> {
    let mut request = asked.for_go(Length::Time(STANDARD), Mode::Cpu, "pprof")?;
    request.symbolize = Symbolize::Never;
    Ok(Outcome::Record(request, manner("profile")))
}

pub(super) fn fgprof(mut asked: RouteContext<'_>) -> Result<Outcome, Answer> {
    let (format, file) = match asked.other("format") {
        None | Some("pprof") => ("pprof", File::Named("profile")),
        Some("folded") => ("folded", File::None),
        Some(other) => {
            let what = format!("format: \"{other}\" is not one of pprof, folded");
            return Err(asked.wrong(what));
        }
    };
    let request = asked.for_go(Length::Time(STANDARD), Mode::Wall, format)?;
    Ok(Outcome::Record(request, ResponseOptions { file, ..manner("profile") }))
}

pub(super) fn gperftools(mut asked: RouteContext<'_>) -> Result<Outcome, Answer> {
    let mut request = asked.for_go(Length::Time(STANDARD), Mode::Cpu, "pprof")?;
    request.format.format = &GPERFTOOLS;
    request.symbolize = Symbolize::Never;
    Ok(Outcome::Record(request, manner("profile")))
}

pub(super) fn goroutine(mut asked: RouteContext<'_>) -> Result<Outcome, Answer> {
    let debug = asked.other("debug").and_then(|debug| debug.trim().parse::<i64>().ok()).unwrap_or(0);
    let (format, file) = match debug {
        ..=0 => (swipr_formats::find("pprof").unwrap_or(&GOROUTINES), File::Named("goroutine")),
        1 => (&GOROUTINES, File::None),
        2.. => (&GOROUTINE_STACKS, File::None),
    };
    let request = asked.moment(format)?;
    Ok(Outcome::Record(request, ResponseOptions { file, ..manner("goroutine") }))
}

pub(super) fn cmdline(_: RouteContext<'_>) -> Result<Outcome, Answer> {
    let arguments: Vec<Vec<u8>> = std::env::args_os().map(|argument| argument.as_bytes().to_vec()).collect();
    Ok(Outcome::Answer(Answer::bytes("text/plain; charset=utf-8", arguments.join(&0))))
}

pub(super) fn symbol_by_query(asked: RouteContext<'_>) -> Result<Outcome, Answer> {
    let query = asked.query.to_owned();
    symbol(asked, &query)
}

pub(super) fn symbol_by_body(asked: RouteContext<'_>) -> Result<Outcome, Answer> {
    let body = String::from_utf8_lossy(asked.body).into_owned();
    symbol(asked, &body)
}

/// A request without addresses checks whether names can be had at all.
fn symbol(mut asked: RouteContext<'_>, text: &str) -> Result<Outcome, Answer> {
    let number = |word: &str| u64::from_str_radix(word.trim().trim_start_matches("0x"), 16).ok();
    let addresses: Vec<u64> = text.split('+').filter_map(number).take(MAX_ADDRESSES).collect();
    if addresses.is_empty() {
        return Ok(Outcome::Answer(Answer::text("num_symbols: 1\n")));
    }
    let mut request = asked.moment(&GOROUTINES)?;
    request.purpose = WriterTask::Names(addresses);
    Ok(Outcome::Record(request, ResponseOptions { file: File::None, ..manner("symbol") }))
}
