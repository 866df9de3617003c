//! The `swipr` command: starts programs with the agent inside, asks agents over their sockets, and
//! reads, writes, shows and sends what they say. It loads nothing into itself and changes nothing
//! about a process that runs.

// They panic where the stream's reader is gone: see `say` and `print`.
#![deny(clippy::print_stderr, clippy::print_stdout)]

mod args;
mod browser;
mod client;
mod clock;
mod convert;
mod diff;
mod docs;
mod doctor;
mod dump;
mod endpoint;
mod error;
mod event;
mod find;
#[cfg(test)]
#[path = "../../../tests/generated.rs"]
mod generated;
mod http;
mod inherited;
mod library;
mod ls;
mod preload_check;
mod process;
mod proxy;
mod push;
mod read;
mod record;
mod run;
mod serve;
mod shape;
mod signals;
mod temp_dir;
mod threads;
mod top;
mod variables;
mod view;
mod write;

use args::{Cli, SampleConv, Verb};
use clap::Parser;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use error::{Error, Exit};
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

/// By this name the command is swift-profile-recorder's converter.
const SAMPLE_CONV: &str = "swipr-sample-conv";

/// Instead of py-spy's option.
const NO_GIL: &str = "a stack does not say whether its thread holds the lock; those that wait for it are marked [waits for the GIL]";

fn main() -> ExitCode {
    let called = std::env::args_os().next().unwrap_or_default();
    if Path::new(&called).file_name().is_some_and(|name| name == SAMPLE_CONV) {
        return parsed(SAMPLE_CONV)
            .map_or_else(|code| code, |own: SampleConv| ended(convert::convert(own.into())));
    }
    let cli: Cli = match parsed("swipr") {
        Ok(cli) => cli,
        Err(code) => return code,
    };
    if matches!(cli.verb, Verb::Run(_) | Verb::Record(_) | Verb::Top(_) | Verb::Push(_))
        && let Err(error) = clock::refuse_faked()
    {
        return ended(Err(error));
    }
    let done = match cli.verb {
        Verb::Run(arguments) => run::run(arguments),
        Verb::Record(arguments) => record::record(arguments),
        Verb::Top(arguments) => top::top(arguments),
        Verb::Dump(arguments) => dump::dump(arguments),
        Verb::Ls(arguments) => ls::ls(arguments),
        Verb::Doctor(arguments) => doctor::doctor(arguments),
        Verb::Convert(arguments) => convert::convert(arguments),
        Verb::Diff(arguments) => diff::diff(arguments),
        Verb::View(arguments) => view::view(arguments),
        Verb::Push(arguments) => push::push(arguments),
        Verb::Proxy(arguments) => proxy::proxy(arguments),
        Verb::Completions(arguments) => docs::completions(arguments),
        Verb::Man(arguments) => docs::man(arguments),
    };
    ended(done)
}

/// The command line. Where it is wrong, that was said, and what to do next.
fn parsed<T: Parser>(command: &str) -> Result<T, ExitCode> {
    T::try_parse().map_err(|mut error| {
        if error.get(ContextKind::InvalidArg) == Some(&ContextValue::String("--gil".to_owned())) {
            error.remove(ContextKind::SuggestedArg);
            error.remove(ContextKind::Usage); // with the one that was suggested
            error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![NO_GIL.into()]));
        }
        let _ = error.print();
        let is_help = error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand;
        if error.use_stderr() && !is_help {
            let verb = std::env::args_os().nth(1).and_then(|word| word.into_string().ok());
            let verb = verb.filter(|word| T::command().find_subcommand(word).is_some());
            let verb = verb.map_or_else(String::new, |verb| format!("{verb} "));
            say(format_args!("next: {command} {verb}--help"));
        }
        ExitCode::from(error.exit_code().try_into().unwrap_or(Exit::Usage as u8))
    })
}

/// Says what went wrong, if anything did.
fn ended(done: Result<ExitCode, Error>) -> ExitCode {
    match done {
        Ok(status) => status,
        Err(error) if error.exit == Exit::NoReader => signals::end_by(libc::SIGPIPE),
        Err(error) => {
            say(&error);
            ExitCode::from(error.exit as u8)
        }
    }
}

/// Writes a line to standard error. A reader that is gone is no error: it would change the exit
/// status.
fn say(text: impl std::fmt::Display) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// Writes to standard output.
fn print(bytes: &[u8]) -> Result<(), Error> {
    let mut out = std::io::stdout().lock();
    out.write_all(bytes).and_then(|()| out.flush()).map_err(|error| {
        let is_unread = error.kind() == std::io::ErrorKind::BrokenPipe;
        let exit = if is_unread { Exit::NoReader } else { Exit::Failed };
        Error::new(format!("cannot write to standard output: {error}"), "look at where it goes").exit(exit)
    })
}
