//! `swipr convert`: a recording in a format that can be read, in any format that can be written.

mod frames;

use crate::args::{Convert, NameStyle, Output};
use crate::error::{Error, Exit};
use crate::event::Event;
use crate::read::{self, By, Contents, Readable, Symbols};
use crate::record::{Plan, tell};
use frames::WantedFrames;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use swipr_formats::FORMATS;
use swipr_formats::model::{Frame, FrameKind, Function, Header, Mode, Summary};
use swipr_offline::{LlvmSymbolizer, SearchPath};

/// Runs the verb.
pub fn convert(arguments: Convert) -> Result<ExitCode, Error> {
    let from = arguments.from.as_deref().map(readable).transpose()?;
    let name = name_of(&arguments.input);
    let mut output = arguments.output;
    if output.output.is_none() {
        let selection = output.selection()?;
        let stem = if arguments.input == Path::new("-") { "profile" } else { name.as_str() };
        let place = PathBuf::from(format!("{stem}.{}", selection.format.suffix));
        if place.exists() {
            let what = format!("{} is there already", place.display());
            let next = format!("-o {} writes over it", place.display());
            return Err(Error::new(what, next).exit(Exit::Usage));
        }
        output.output = Some(place);
    }
    let plan = Plan::new(&output, &name, 0)?;
    let input = open(&arguments.input)?;
    let mut writer = plan.open()?;
    let mut frames = WantedFrames::new(arguments.frames.shown());
    let shape = Arc::new(frames.shape(output.shape()));
    let (mut summary, mut failure, mut are_demangled) = (Summary::default(), None, false);
    let wants_mangled = output.names == NameStyle::Mangled;
    let mut take = |event| {
        let taken = match event {
            Event::Header(header) => check_mode(&header, &output).map(|()| writer.begin(&header)),
            Event::Sample(sample) => {
                are_demangled |= wants_mangled && sample.stack.frames.iter().any(is_demangled);
                frames.take(&sample.stack).and_then(|()| writer.sample(&sample))
            }
            Event::End(end) => {
                summary = end;
                Ok(())
            }
        };
        taken.map_err(|error| {
            failure = Some(error.clone());
            error.what
        })
    };
    let by = by(&arguments.symbolizer, &arguments.symbols)?;
    let mut symbols = Symbols { directories: arguments.symbols, by, ..Symbols::default() };
    let read = read::recording(input, from, &name, &shape, &mut symbols, &mut take);
    if let Some(error) = failure {
        return Err(error);
    }
    let cannot = |error| not_read(&arguments.input, error);
    let contents = read.map_err(cannot)?;
    frames.end(contents.format)?;
    if writer.samples == 0 {
        return Err(cannot(read::not_whole("there is no sample in it")));
    }
    summary.samples = writer.samples;
    writer.finish(&summary)?;
    tell(&plan, &summary);
    if !output.quiet {
        hint(are_demangled, &symbols, &contents);
    }
    Ok(ExitCode::SUCCESS)
}

/// CPU samples represent different times, and swift-profile-recorder's text has none.
fn check_mode(header: &Header, output: &Output) -> Result<(), Error> {
    match output.compat && header.mode == Mode::Cpu && output.format.as_deref() == Some("perf") {
        true => Err(Error::new(
            "this is a recording of CPU time, of which perf text without periods would be false",
            "`swipr convert FILE -o app.perf` writes it with periods",
        )),
        false => Ok(()),
    }
}

/// Says what was counted, which names are not those that were asked for, and which are missing.
fn hint(are_demangled: bool, symbols: &Symbols, contents: &Contents) {
    contents.hint();
    if are_demangled {
        crate::say(
            "swipr: of some functions the file has no mangled name: they have the one that they have in it",
        );
    }
    if !symbols.unknown.is_empty() && !symbols.directories.is_empty() {
        let unknown = symbols.unknown.join(", ");
        crate::say(format_args!(
            "swipr: no names for some functions of {unknown}: they are in no file of --symbols"
        ));
    }
    if !symbols.missing.is_empty() {
        let missing = symbols.missing.join(", ");
        crate::say(format_args!(
            "swipr: no names for {missing}: no file with that build id\nnext: --symbols DIR names a folder that has it"
        ));
    }
}

/// What is to find names; starts `program`, unless it is `native` or `fake`.
fn by(program: &Path, directories: &[PathBuf]) -> Result<By, Error> {
    match program.to_str() {
        Some("native") => return Ok(By::Us),
        Some("fake") => return Ok(By::Nobody),
        _ => {}
    }
    let search = SearchPath::new(directories.iter().cloned());
    LlvmSymbolizer::start(program, &search).map(By::Program).map_err(|error| {
        let what = format!("cannot use {}: {error}", program.display());
        Error::new(what, "install LLVM 13 or later, or leave --symbolizer out: names are found without it")
    })
}

/// A format by its name.
fn readable(name: &str) -> Result<Readable, Error> {
    let found = Readable::ALL.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
    found.map(|(_, format)| *format).ok_or_else(|| {
        let names: Vec<&str> = Readable::ALL.iter().map(|(name, _)| *name).collect();
        let next = format!("take one of {}", names.join(", "));
        Error::new(format!("format \"{name}\" cannot be read"), next).exit(Exit::Usage)
    })
}

/// Opens a file, or standard input for `-`.
pub fn open(path: &Path) -> Result<Box<dyn Read>, Error> {
    if path == Path::new("-") {
        return Ok(Box::new(std::io::stdin()));
    }
    match File::open(path) {
        Ok(file) => Ok(Box::new(file)),
        Err(error) => {
            Err(Error::new(format!("cannot open {}: {error}", path.display()), "check the file's name"))
        }
    }
}

/// Suffixes of recordings, besides those of the formats.
const SUFFIXES: [&str; 4] = ["json", "gz", "pb", "samples"];

/// The file's name without the suffixes that recordings have. What else is behind a point, a date
/// or a version, belongs to the name.
pub fn name_of(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let mut stem = name.trim_start_matches('.');
    while let Some(rest) = without_suffix(stem) {
        stem = rest;
    }
    if ["", "-"].contains(&stem) { "profile".to_owned() } else { stem.to_owned() }
}

fn without_suffix(name: &str) -> Option<&str> {
    let mut suffixes = FORMATS.iter().map(|format| format.suffix).chain(SUFFIXES);
    suffixes.find_map(|suffix| name.strip_suffix(suffix)?.strip_suffix('.')).filter(|rest| !rest.is_empty())
}

/// The same with the file's name, for a verb without `--from`.
pub fn cannot_read(path: &Path, error: Error) -> Error {
    let next = error.next.replace("--from", "`swipr convert --from`");
    not_read(path, Error { next, ..error })
}

fn not_read(path: &Path, error: Error) -> Error {
    Error { what: format!("cannot read {}: {}", path.display(), error.what), ..error }
}

/// Whether a function of the frame has a demangled name, and no other.
fn is_demangled(frame: &Frame) -> bool {
    let is = |function: &Function| function.mangled.is_none() && function.name.contains("::");
    frame.kind == FrameKind::Native && frame.functions.iter().any(is)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Recordings of two days, `my.app.2024-01-05.jsonl` and the next, were both `my`.
    #[test]
    fn a_name_loses_the_suffixes_of_recordings_and_nothing_else() {
        for (file, name) in [
            ("/a/my.app.2024-01-05.jsonl", "my.app.2024-01-05"),
            ("swipr-python3.11-7.pb.gz", "swipr-python3.11-7"),
            ("app.folded.gz", "app"),
            ("a.firefox.json", "a"),
            ("zoo.samples", "zoo"),
            ("perf.out", "perf.out"),
            ("samples", "samples"),
            (".folded", "folded"),
            ("-", "profile"),
            ("..", "profile"),
        ] {
            assert_eq!(name_of(Path::new(file)), name, "{file}");
        }
    }
}
