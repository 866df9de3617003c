//! `swipr diff`: what takes more of the whole than before, and what less. Recordings may be of different formats and lengths.

use crate::args::Diff;
use crate::convert;
use crate::error::{Error, Exit};
use crate::event::Event;
use crate::read::{self, Symbols};
use crate::shape::Shape;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use swipr_formats::{Options, Stacks};

/// Runs the verb.
pub fn diff(arguments: Diff) -> Result<ExitCode, Error> {
    let (before, after) = (stacks(&arguments.before)?, stacks(&arguments.after)?);
    let title = arguments.title.unwrap_or_else(|| {
        format!("{} compared with {}", arguments.after.display(), arguments.before.display())
    });
    let diff = swipr_formats::Diff { before, after, title };
    let Some(output) = arguments.output.filter(|path| path != Path::new("-")) else {
        crate::print(diff.text(arguments.lines).as_bytes())?;
        return Ok(ExitCode::SUCCESS);
    };
    let text = match output.extension().and_then(|end| end.to_str()) {
        Some("html") => diff.html(),
        Some("svg") => diff.svg(),
        Some("txt") => diff.text(arguments.lines),
        _ => {
            let what = format!("the name {} does not say which format", output.display());
            return Err(Error::new(what, "end it with .html, .svg or .txt").exit(Exit::Usage));
        }
    };
    std::fs::write(&output, text).map_err(|error| {
        Error::new(format!("cannot write {}: {error}", output.display()), "choose another place with -o FILE")
    })?;
    eprintln!(
        "swipr: wrote {}\nnext: open it in a browser: red has grown, blue has shrunk",
        output.display()
    );
    Ok(ExitCode::SUCCESS)
}

/// A recording's stacks, of all threads together.
fn stacks(path: &Path) -> Result<Stacks, Error> {
    let cannot = |why: String| {
        let next = "recordings can be read in raw, perf, folded and pprof";
        Error::new(format!("cannot read {}: {why}", path.display()), next)
    };
    let folded = swipr_formats::find("folded").ok_or_else(|| cannot("no format holds it".to_owned()))?;
    let mut writer = (folded.make)(&Options { merge_threads: true, ..Options::default() });
    let (mut bytes, mut samples) = (Vec::new(), 0_u64);
    let mut take = |event| {
        match event {
            Event::Header(header) => writer.begin(&header, &mut bytes),
            Event::Sample(sample) => {
                samples += u64::from(sample.ticks);
                writer.sample(&sample.as_sample(), &mut bytes);
            }
            // Of a recording that was cut there is none.
            Event::End(_) => {}
        }
        Ok(())
    };
    let (name, shape, mut symbols) = (convert::name_of(path), Arc::new(Shape::default()), Symbols::default());
    read::recording(convert::open(path)?, None, &name, &shape, &mut symbols, &mut take).map_err(&cannot)?;
    if samples == 0 {
        return Err(cannot("there is no sample in it".to_owned()));
    }
    writer.finish(&Default::default(), &mut bytes);
    Stacks::read(&bytes).map_err(|error| cannot(error.to_string()))
}
