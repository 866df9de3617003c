//! `swipr diff`: what takes more of the whole than before, and what less. Recordings may be of
//! different formats and lengths.

use crate::args::Diff;
use crate::convert;
use crate::error::{Error, Exit};
use crate::event::Event;
use crate::read::{self, Readable, Symbols};
use crate::record;
use crate::shape::{ReuseThreads, Shape};
use crate::write::{OutputTarget, write_whole};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use swipr_formats::model::Mode;
use swipr_formats::{Options, Stacks, Weight, names};

/// Runs the verb.
pub fn diff(arguments: Diff) -> Result<ExitCode, Error> {
    let read = |path| stacks(path, arguments.weight.map(Weight::from));
    let ((before, before_mode), (after, after_mode)) = (read(&arguments.before)?, read(&arguments.after)?);
    // A format without a mode has no measure either.
    if let Some(why) = differ([(&arguments.before, &before), (&arguments.after, &after)])
        && before_mode.is_some()
        && after_mode.is_some()
    {
        let next = "compare profiles of one kind";
        return Err(Error::new(why, next).exit(Exit::Usage));
    }
    if let (Some(before_mode), Some(after_mode)) = (before_mode, after_mode)
        && before_mode != after_mode
    {
        let of = |path: &Path, mode| match mode {
            Mode::Wall => format!("{} is of wall-clock time", path.display()),
            Mode::Cpu => format!("{} is of CPU time", path.display()),
        };
        let (first, second) = (of(&arguments.before, before_mode), of(&arguments.after, after_mode));
        let next = "record both with the same --mode";
        return Err(Error::new(format!("cannot compare: {first}, {second}"), next).exit(Exit::Usage));
    }
    for (path, mode) in [(&arguments.after, after_mode), (&arguments.before, before_mode)] {
        if mode.is_none() {
            crate::say(format_args!(
                "swipr: {} does not say whether it is of CPU time or of wall-clock time\n\
                 next: see that both are of the same --mode; raw, perf and pprof files say it",
                path.display()
            ));
            break;
        }
    }
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
    write_whole(&OutputTarget::new(&output), text.as_bytes())?;
    crate::say(format_args!(
        "swipr: wrote {}\nnext: open it in a browser: red has grown, blue has shrunk",
        output.display()
    ));
    Ok(ExitCode::SUCCESS)
}

/// Why they cannot be compared, if they have weights of different kinds.
fn differ(both: [(&PathBuf, &Stacks); 2]) -> Option<String> {
    let of = |(path, stacks): (&PathBuf, &Stacks)| match &stacks.measure {
        Some(measure) => format!("{} is of {}", path.display(), names::measure(measure)),
        None => format!("{} is of time", path.display()),
    };
    let [before, after] = both;
    let is_one = before.1.measure == after.1.measure;
    (!is_one).then(|| format!("cannot compare: {}, {}", of(before), of(after)))
}

/// A recording's stacks, of all threads together, and its mode, where the file says it.
fn stacks(path: &Path, weight: Option<Weight>) -> Result<(Stacks, Option<Mode>), Error> {
    let cannot = |error| convert::cannot_read(path, error);
    let folded =
        swipr_formats::find("folded").ok_or_else(|| cannot(read::unreadable("no format holds it")))?;
    let mut writer = (folded.make)(&Options { merge_threads: true, weight, ..Options::default() });
    let (mut bytes, mut samples, mut mode, mut measure) = (Vec::new(), 0_u64, Mode::Wall, None);
    let (mut sum, mut squares) = (0.0, 0.0);
    let mut take = |event| {
        match event {
            Event::Header(header) => {
                mode = header.mode;
                measure.clone_from(&header.measure);
                writer.begin(&header, &mut bytes);
            }
            Event::Sample(sample) => {
                let (ticks, each_ns) = (f64::from(sample.ticks), sample.weight_ns as f64);
                (sum, squares) = (sum + ticks * each_ns, squares + ticks * each_ns * each_ns);
                samples += u64::from(sample.ticks);
                writer.sample(&sample.as_sample(), &mut bytes);
            }
            Event::End(_) => {}
        }
        Ok(())
    };
    let (name, shape, mut symbols) = (convert::name_of(path), Arc::new(Shape::default()), Symbols::default());
    let input = convert::open(path)?;
    let found = read::recording(input, None, &name, &shape, &mut symbols, &mut take).map_err(cannot)?;
    found.hint();
    if samples == 0 {
        return Err(cannot(read::not_whole("there is no sample in it")));
    }
    writer.finish(&Default::default(), &mut bytes);
    let stacks = Stacks::read(&String::from_utf8_lossy(&bytes))
        .map_err(|error| cannot(read::unreadable(error.to_string())))?;
    let stacks = Stacks { weights: without_ids(stacks.weights), ..stacks };
    let usual = if measure.is_some() { Weight::Nanoseconds } else { Weight::of(mode) };
    let unit = Some(weight.unwrap_or(usual));
    let waits = || stacks.weights.keys().filter_map(|stack| stack.last()).any(|leaf| read::is_waiting(leaf));
    // The ticks of one wait are no independent samples.
    let is_random = mode == Mode::Cpu && measure.is_none() && found.has_counts;
    let equal = match unit {
        _ if !is_random => 0.0,
        Some(Weight::Samples) => samples as f64,
        _ => sum * sum / f64::max(squares, 1.0),
    };
    // Large counts are nanoseconds, of CPU time; small ones may be anything.
    let is_known = found.format != Readable::Folded || mode == Mode::Cpu || waits();
    Ok((Stacks { unit, measure, samples: equal, ..stacks }, is_known.then_some(mode)))
}

/// Processes of one name are one, as threads are: the next run has others.
fn without_ids(weights: BTreeMap<Vec<String>, u64>) -> BTreeMap<Vec<String>, u64> {
    let mut merged = BTreeMap::new();
    for (mut stack, weight) in weights {
        if let Some(root) = stack.first_mut()
            && let Some(name) = record::process_of(root)
        {
            *root = record::root(name, 0, ReuseThreads::Yes);
        }
        *merged.entry(stack).or_default() += weight;
    }
    merged
}
