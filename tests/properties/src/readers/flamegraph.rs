//! What FlameGraph's two programs make of text, by their rules, rewritten here:
//! `stackcollapse-perf.pl` of perf script text, and `flamegraph.pl` of folded stacks. Whatever they
//! would warn of, or pass over, is an error.

/// Perf script text as `stackcollapse-perf.pl --tid` folds it, and what each stack weighs.
pub fn collapse(perf: &str) -> Vec<(Vec<String>, u64)> {
    let mut all = Vec::new();
    // The name of the sample that is read, its weight, and its frames, root first.
    let mut sample: Option<(String, u64)> = None;
    let mut frames: Vec<String> = Vec::new();
    let mut event: Option<String> = None;
    for line in perf.split_terminator('\n') {
        if line.starts_with('#') {
            continue;
        }
        if line.is_empty() {
            if let Some((name, weight)) = sample.take() {
                let stack = std::iter::once(name).chain(frames.drain(..)).collect();
                all.push((stack, weight));
            }
        } else if let Some(header) = sample_header(line) {
            let first = event.get_or_insert_with(|| header.event.clone());
            assert_eq!(*first, header.event, "another event is passed over: {line:?}");
            assert!(sample.is_none(), "a sample without an end before {line:?}");
            sample = Some((header.name, header.weight));
        } else if let Some((function, module)) = frame(line) {
            assert!(sample.is_some(), "a frame of no sample: {line:?}");
            frames.splice(0..0, shown(function, module));
        } else {
            // Source lines are not looked at.
            assert!(line.starts_with("  "), "unrecognized line: {line:?}");
        }
    }
    assert!(sample.is_none(), "the last sample has no end and is lost");
    all
}

struct SampleHeader {
    name: String,
    weight: u64,
    event: String,
}

/// `comm pid/tid …: weight event:`. The name ends at the first blanks, from its third byte on, that
/// a number with a blank behind it follows.
fn sample_header(line: &str) -> Option<SampleHeader> {
    if line.starts_with(|c: char| c.is_ascii_whitespace()) {
        return None;
    }
    let is_blank = |c: char| c.is_ascii_whitespace();
    let ends = line.char_indices().skip(2).filter(|(_, c)| is_blank(*c));
    let (comm, ids) = ends.map(|(at, _)| line.split_at(at)).find_map(|(comm, rest)| {
        let rest = rest.trim_start_matches(is_blank);
        let ids = &rest[..rest.find(is_blank)?];
        let (pid, tid) = ids.split_once('/').unwrap_or((ids, "0"));
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        (is_number(pid) && is_number(tid)).then_some((comm, ids))
    })?;
    // Without an event behind the time, a sample counts once.
    let counted = line.trim_end().strip_suffix(':').and_then(|line| line.rsplit_once(is_blank));
    let (weight, event) = counted.map_or((None, ""), |(before, event)| {
        (before.rsplit_once(is_blank).and_then(|(_, weight)| weight.parse().ok()), event)
    });
    let (name, weight) = (format!("{}-{ids}", comm.replace(' ', "_")), weight.unwrap_or(1));
    Some(SampleHeader { name, weight, event: event.to_owned() })
}

/// A frame's function and module: a word, then anything up to the last ` (`, then anything up to
/// the last `)`.
fn frame(line: &str) -> Option<(&str, &str)> {
    let line = line.trim_start();
    let word = line.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(|&end| end > 0)?;
    let (rest, _) = line[word..].rsplit_once(')')?;
    let (function, module) = rest.rsplit_once(" (")?;
    Some((function.trim_start(), module)).filter(|(function, _)| !function.is_empty())
}

/// The boxes of a frame, caller first; none of one that is taken for a process's name.
fn shown(function: &str, module: &str) -> Vec<String> {
    let offset = function.rfind("+0x").filter(|&at| {
        let digits = &function[at + 3..];
        !digits.is_empty()
            && digits.bytes().all(|byte| byte.is_ascii_hexdigit() && !byte.is_ascii_uppercase())
    });
    let function = &function[..offset.unwrap_or(function.len())];
    assert!(!function.starts_with('('), "taken for a process's name: {function:?}");
    function.split("->").map(|name| tidied(name, module)).collect()
}

fn tidied(name: &str, module: &str) -> String {
    let file = module.rsplit('/').next().unwrap_or(module);
    let name = match (name, module) {
        ("[unknown]", "[unknown]") => "[unknown]".to_owned(),
        ("[unknown]", _) => format!("[{file}]"),
        _ => name.replace(';', ":"),
    };
    // `.(…).` is how Go writes methods; a parenthesis elsewhere begins arguments.
    let is_go = name.find(".(").is_some_and(|at| name[at..].rfind(").").is_some_and(|end| end > 1));
    let arguments = name
        .match_indices('(')
        .map(|(at, _)| at)
        .find(|&at| !name[at..].starts_with("(anonymous namespace)"));
    let name = if is_go { &name[..] } else { &name[..arguments.unwrap_or(name.len())] };
    name.replace(['"', '\''], "")
}

/// Folded stacks as `flamegraph.pl` takes them: frames from the root on, and the weight. A line
/// that it would pass over is an error.
pub fn draw(folded: &str) -> Vec<(Vec<String>, u64)> {
    let stack = |line: &str| {
        let (stack, weight) = line.rsplit_once(|c: char| c.is_ascii_whitespace())?;
        let frames = stack.split(';').map(|name| name.replace('<', "(").replace('>', ")")).collect();
        Some((frames, weight.parse().ok()?))
    };
    folded.lines().map(|line| stack(line).unwrap_or_else(|| panic!("ignored: {line:?}"))).collect()
}
