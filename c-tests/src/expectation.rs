//! What a program expects of a recording of itself, in one line of English each:
//!
//! ```text
//! samples >= 200
//! threads >= 5
//! stats truncated = 0
//! seconds without a stack <= 0.5           of CPU time
//! every tick is accounted for              where no thread comes or goes
//! thread THREAD has stack outer;inner      one sample at least
//! thread THREAD is not sampled
//! every sample of THREAD has stack outer;inner
//! every sample of THREAD is complete
//! every sample of THREAD is truncated
//! share of THREAD with stack outer;inner >= 0.9
//! share of named frames in MODULE >= 0.99
//! depth of THREAD >= 500                   every sample
//! ```
//! THREAD is a thread's name, `main` for the first thread, or `*`. A stack goes from
//! outer to inner and leaves out what it likes; `*` inside a name stands for any text.
//! An "every" of a thread that has no sample is a failure: it would say nothing.

use crate::recording::{Recording, Sample};

/// Whether `recording` is as `line` says; the error names what was found instead.
pub fn check(line: &str, recording: &Recording) -> Result<(), String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let held = match words.as_slice() {
        ["samples", relation, wanted] => compare(recording.count() as f64, relation, wanted),
        ["threads", relation, wanted] => compare(recording.threads() as f64, relation, wanted),
        ["stats", key, relation, wanted] => {
            let found = recording.stats.iter().find(|(name, _)| name == key);
            let (_, value) = found.ok_or_else(|| format!("{line}: there is no such figure"))?;
            compare(*value as f64, relation, wanted)
        }
        ["seconds", "without", "a", "stack", "<=", wanted] => {
            // Where there is no such time, there is no such figure.
            let found = recording.stats.iter().find(|(name, _)| name == "unsampled_cpu_ns");
            compare(found.map_or(0.0, |(_, ns)| *ns as f64 / 1e9), "<=", wanted)
        }
        ["every", "tick", "is", "accounted", "for"] => every_tick(recording),
        ["thread", thread, "has", "stack", stack] => {
            let samples = samples_of(recording, thread)?;
            match samples.iter().any(|sample| has_stack(sample, stack)) {
                true => Ok(()),
                false => Err(format!("none has it; one is {}", samples[0].chain())),
            }
        }
        ["thread", thread, "is", "not", "sampled"] => match samples_of(recording, thread) {
            Ok(samples) => Err(format!("one sample is {}", samples[0].chain())),
            Err(_) => Ok(()),
        },
        ["every", "sample", "of", thread, "has", "stack", stack] => {
            every(recording, thread, |sample| has_stack(sample, stack))
        }
        ["every", "sample", "of", thread, "is", "complete"] => every(recording, thread, is_complete),
        ["every", "sample", "of", thread, "is", "truncated"] => every(recording, thread, is_cut),
        ["share", "of", thread, "with", "stack", stack, relation, wanted] => {
            let samples = samples_of(recording, thread)?;
            let all: u64 = samples.iter().map(|sample| sample.weight).sum();
            let with = samples.iter().filter(|sample| has_stack(sample, stack));
            let with: u64 = with.map(|sample| sample.weight).sum();
            compare(with as f64 / all as f64, relation, wanted)
        }
        ["share", "of", "named", "frames", "in", module, relation, wanted] => {
            compare(share_of_named(recording, module)?, relation, wanted)
        }
        ["depth", "of", thread, relation, wanted] => {
            let samples = samples_of(recording, thread)?;
            let least = samples.iter().map(|sample| sample.frames.len()).min();
            compare(least.unwrap_or(0) as f64, relation, wanted)
        }
        _ => return Err(format!("{line}: not an expectation")),
    };
    held.map_err(|why| format!("{line}: {why}"))
}

fn compare(found: f64, relation: &str, wanted: &str) -> Result<(), String> {
    let limit: f64 = wanted.parse().map_err(|_| format!("{wanted} is not a number"))?;
    let holds = match relation {
        ">=" => found >= limit,
        "<=" => found <= limit,
        "=" => found == limit,
        _ => return Err(format!("{relation} is not a relation")),
    };
    match holds {
        true => Ok(()),
        false => Err(format!("it is {found}")),
    }
}

/// The samples of a thread: at least one.
fn samples_of<'a>(recording: &'a Recording, thread: &str) -> Result<Vec<&'a Sample>, String> {
    let samples: Vec<&Sample> = recording
        .samples
        .iter()
        .filter(|sample| match thread {
            "*" => true,
            "main" => sample.is_of_main_thread(),
            name => sample.thread == name,
        })
        .collect();
    match samples.is_empty() {
        true => Err(format!("there is no sample of {thread}")),
        false => Ok(samples),
    }
}

/// Each thread has one sample for each tick, or the reason why it has none is counted.
fn every_tick(recording: &Recording) -> Result<(), String> {
    let figure = |name: &str| {
        let found = recording.stats.iter().find(|(known, _)| known == name);
        found.map_or(0, |&(_, value)| value)
    };
    let written = recording.count() + recording.unseen;
    let counted = written + figure("dropped");
    let due = figure("threads") * figure("ticks") + figure("filled");
    match counted == due && written == figure("samples") {
        true => Ok(()),
        false => Err(format!("{counted} of {due}, {written} of them samples: {:?}", recording.stats)),
    }
}

fn every(recording: &Recording, thread: &str, holds: impl Fn(&Sample) -> bool) -> Result<(), String> {
    let samples = samples_of(recording, thread)?;
    let others: Vec<_> = samples.iter().filter(|sample| !holds(sample)).collect();
    match others.first() {
        None => Ok(()),
        Some(other) => {
            Err(format!("{} of {} are not, one is {}", others.len(), samples.len(), other.chain()))
        }
    }
}

/// Whether the names of `stack` appear in the sample in this order, with gaps.
pub fn has_stack(sample: &Sample, stack: &str) -> bool {
    let mut frames = sample.frames.iter();
    stack.split(';').all(|wanted| frames.any(|frame| matches(&frame.name, wanted)))
}

/// Whether `name` is `pattern`, in which `*` stands for any text.
fn matches(name: &str, pattern: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = name.strip_prefix(first) else {
        return false;
    };
    let mut last = None;
    for part in parts {
        if let Some(previous) = last.replace(part) {
            match rest.find(previous) {
                Some(at) => rest = &rest[at + previous.len()..],
                None => return false,
            }
        }
    }
    last.map_or(rest.is_empty(), |suffix| rest.ends_with(suffix))
}

/// Whether the stack reaches the place where its thread began: the program's entry for
/// the first thread, else the C library, which has no name for it once stripped.
fn is_complete(sample: &Sample) -> bool {
    let Some(outermost) = sample.frames.first() else {
        return false;
    };
    let module = outermost.module.rsplit('/').next().unwrap_or_default();
    // A thread that waits for its first CPU has no frame.
    if outermost.name == "[not begun]" {
        return sample.frames.iter().skip(1).all(|frame| frame.name == "[waiting for a CPU]");
    }
    let is_root = if sample.is_of_main_thread() {
        outermost.name == "_start"
    } else {
        module.starts_with("libc.so") || module.starts_with("libc-") || module.contains("ld-musl")
    };
    is_root && !is_cut(sample)
}

fn is_cut(sample: &Sample) -> bool {
    sample.frames.iter().any(|frame| frame.name.starts_with("[truncated"))
}

fn share_of_named(recording: &Recording, module: &str) -> Result<f64, String> {
    let frames: Vec<_> = recording
        .samples
        .iter()
        .flat_map(|sample| &sample.frames)
        .filter(|frame| frame.module.rsplit('/').next() == Some(module))
        .collect();
    if frames.is_empty() {
        return Err(format!("there is no frame in {module}"));
    }
    let named = frames.iter().filter(|frame| frame.is_named()).count();
    Ok(named as f64 / frames.len() as f64)
}

/// Fails with everything that does not hold.
pub fn expect(recording: &Recording, lines: &[&str]) {
    let failures: Vec<_> = lines.iter().filter_map(|line| check(line, recording).err()).collect();
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "work 10/11 1.000000001: 1000000 wall-clock:\n\
        \taaaa leaf+0x1f (/x/app)\n\
        \taaab middle+0x1f (/x/app)\n\
        \tbbbb libc.so.6+0x89c (/lib/libc.so.6)\n\
        \n\
        work 10/11 1.000000002: 1000000 wall-clock:\n\
        \taaaf [truncated: no table] ([unknown])\n\
        \taaaa app+0x1f (/x/app)\n\
        \n\
        app 10/10 1.000000003: 1000000 wall-clock:\n\
        \tcccc main+0x0 (/x/app)\n\
        \tcccd _start+0x0 (/x/app)\n\n";

    #[test]
    fn what_holds_and_what_does_not_differ() {
        let recording = Recording::parse(TEXT, "truncated=1").expect("samples");
        for line in [
            "samples >= 3",
            "threads = 2",
            "stats truncated = 1",
            "thread work has stack middle;leaf",
            "thread work has stack [trunc*table]",
            "thread idle is not sampled",
            "every sample of main has stack main",
            "every sample of main is complete",
            "share of work with stack middle >= 0.5",
            "share of named frames in app >= 0.8",
            "depth of main = 2",
        ] {
            assert_eq!(check(line, &recording), Ok(()));
        }
        for line in [
            "samples >= 4",
            "threads = 3",
            "stats truncated = 0",
            "stats unheard = 0",
            "thread work has stack leaf;middle",
            "thread work has stack mid",
            "thread idle has stack main",
            "thread work is not sampled",
            "every sample of work has stack middle",
            "every sample of work is complete",
            "every sample of idle has stack main",
            "every sample of idle is complete",
            "share of work with stack middle >= 0.6",
            "share of named frames in app >= 0.9",
            "share of named frames in lib >= 0.0",
            "depth of main >= 3",
            "samples > 1",
            "samples are nice",
        ] {
            assert!(check(line, &recording).is_err(), "{line}");
        }
    }

    #[test]
    fn an_asterisk_stands_for_any_text() {
        assert!(matches("[4000 frames elided]", "[*elided]"));
        assert!(matches("abcbc", "a*bc") && matches("ab", "*") && matches("ab", "a*b*"));
        assert!(!matches("abcb", "a*bc") && !matches("ab", "a") && !matches("ab", "b*"));
    }
}
