//! Recordings with any names: what goes into a format comes out of it, every sample, every weight,
//! every thread and every frame.

mod made;

use crate::choices::Choices;
use crate::readers::folded::{collapse, parse_folded};
use crate::readers::viewers::{self, Weighted};
use crate::readers::{perf, pprof};
use made::{Made, PID};
use serde_json::Value;
use std::collections::BTreeMap;
use swipr_formats::model::{Frame, FrameKind, Mode, State};
use swipr_formats::{Options, Weight};

/// See the module's text.
pub fn check(bytes: &[u8]) {
    let mut choices = Choices::new(bytes);
    let options = made::options(&mut choices);
    let made = Made::new(&mut choices);
    perf_text(&made, &options);
    folded(&made, &options);
    profile(&made, &options);
    raw(&made, &options);
    json(&made, &options);
    dump(&made, &options);
    pictures(&made, &options);
}

/// Lines of a stack, before what is said when there is none.
fn lines(frames: &[Frame], options: &Options) -> usize {
    let lines = |frames: &[Frame]| -> usize {
        let functions = |frame: &Frame| if options.inline { frame.functions.len() } else { 1 };
        frames.iter().map(|frame| functions(frame).max(1)).sum()
    };
    match options.max_depth.map(|depth| depth.max(2)) {
        Some(depth) if frames.len() > depth => {
            let outer = frames.len() - depth / 2;
            lines(&frames[..depth - depth / 2]) + 1 + lines(&frames[outer..])
        }
        _ => lines(frames),
    }
}

/// Whether the leaf of a text tells what the thread waits for.
fn tells_state(made: &Made, options: &Options, state: State) -> bool {
    options.states && made.header.mode == Mode::Wall && state != State::Running
}

fn perf_text(made: &Made, options: &Options) {
    let text = made.text("perf", options);
    let samples = perf::read(&text);
    let expected: Vec<_> = made.each_tick().collect();
    assert_eq!(samples.len(), expected.len());
    for (sample, expected) in samples.iter().zip(&expected) {
        let tid = if options.merge_threads { PID } else { expected.thread.tid };
        assert_eq!((sample.pid, sample.tid), (PID, tid));
        assert_eq!(sample.period, if options.compat { 1 } else { expected.weight_ns });
        let leaf = usize::from(!options.compat && tells_state(made, options, expected.state));
        let frames = lines(&expected.stack.frames, options).max(1) + leaf;
        assert_eq!(sample.frames.len(), frames, "{sample:?}");
    }
    let folded = collapse(&text);
    let ns: u64 = samples.iter().map(|sample| sample.period).sum();
    assert_eq!(folded.iter().map(|line| line.1).sum::<u64>(), ns);
    let mut depths = BTreeMap::new();
    for sample in samples.iter().filter(|sample| sample.period > 0) {
        *depths.entry(1 + sample.frames.len()).or_insert(0) += sample.period;
    }
    assert_eq!(by_depth(&folded), depths, "{text}");
}

/// What the lines of each length weigh.
fn by_depth(lines: &[(Vec<String>, u64)]) -> BTreeMap<usize, u64> {
    let mut depths = BTreeMap::new();
    for (parts, count) in lines.iter().filter(|line| line.1 > 0) {
        assert!(parts.iter().all(|part| !part.is_empty()), "{parts:?}");
        *depths.entry(parts.len()).or_insert(0) += count;
    }
    depths
}

fn folded(made: &Made, options: &Options) {
    let text = made.text("folded", options);
    let weight = options.weight.unwrap_or(Weight::of(made.header.mode));
    let lines_of = |weight_ns| match weight {
        Weight::Samples => 1,
        Weight::Nanoseconds => weight_ns,
    };
    let mut depths = BTreeMap::new();
    for sample in made.each_tick() {
        let leaf = usize::from(tells_state(made, options, sample.state));
        let thread = usize::from(!options.merge_threads);
        let depth = lines(&sample.stack.frames, options).max(1) + leaf + thread;
        *depths.entry(depth).or_insert(0) += lines_of(sample.weight_ns);
    }
    depths.retain(|_, &mut count| count > 0);
    match depths.is_empty() {
        true => assert!(text.starts_with("# swipr: no samples") && text.lines().count() == 1, "{text}"),
        false => assert_eq!(by_depth(&parse_folded(&text)), depths, "{text}"),
    }
}

fn profile(made: &Made, options: &Options) {
    let profile = pprof::decode(&made.write("pprof", options));
    let mut expected = BTreeMap::new();
    for sample in made.each_tick() {
        let tid = (!options.merge_threads).then_some(i64::from(sample.thread.tid));
        let sum = expected.entry((tid, lines(&sample.stack.frames, options).max(1))).or_insert([0, 0]);
        *sum = [sum[0] + 1, sum[1] + sample.weight_ns as i64];
    }
    let mut found = BTreeMap::new();
    for sample in &profile.sample {
        let key = (profile.number(sample, "thread_id"), profile.frames(sample).len());
        let sum = found.entry(key).or_insert([0, 0]);
        *sum = [sum[0] + sample.value[0], sum[1] + sample.value[1]];
    }
    assert_eq!(found, expected);
}

/// A frame as it is, read back from JSON.
fn assert_frame(found: &Value, frame: &Frame, functions: &[swipr_formats::model::Function]) {
    let kind = match frame.kind {
        FrameKind::Native => Value::Null,
        FrameKind::Jit => "jit".into(),
        FrameKind::Interpreted(language) => language.word().into(),
        FrameKind::Note => "note".into(),
    };
    assert_eq!(found["kind"], kind);
    assert_eq!(found["address"], format!("{:#x}", frame.address));
    let written = found["functions"].as_array().cloned().unwrap_or_default();
    assert_eq!(written.len(), functions.len());
    for (written, function) in written.iter().zip(functions) {
        assert_eq!(written["name"], *function.name);
        assert_eq!(written["offset"], function.offset);
        assert_eq!(written["mangled"].as_str(), function.mangled.as_deref());
        assert_eq!(written["file"].as_str(), function.file.as_deref());
        assert_eq!(written["line"].as_u64(), function.line.map(u64::from));
    }
}

fn raw(made: &Made, options: &Options) {
    let text = made.text("raw", options);
    let mut lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()).peekable();
    let header = lines.next().unwrap();
    assert_eq!(header["process_name"], made.header.process_name);
    assert_eq!(header["executable"], made.header.executable);
    let mut known: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    let mut expected = made.each_tick();
    let mut last = Value::Null;
    for line in lines {
        let kind = line["type"].as_str().unwrap().to_owned();
        if kind == "sample" {
            let sample = expected.next().unwrap();
            let get = |kind: &str| &known[kind][line[kind].as_u64().unwrap() as usize];
            assert_eq!(get("thread")["name"], sample.thread.name);
            assert_eq!(get("thread")["tid"], sample.thread.tid);
            assert_eq!(line["weight_ns"], sample.weight_ns);
            let frames = get("stack")["frames"].as_array().unwrap();
            assert_eq!(frames.len(), sample.stack.frames.len());
            for (found, frame) in frames.iter().zip(&sample.stack.frames) {
                assert_frame(found, frame, &frame.functions);
                let module = found["module"].as_u64().map(|id| &known["module"][id as usize]["path"]);
                assert_eq!(module.and_then(Value::as_str), frame.module.as_ref().map(|module| &*module.path));
            }
        }
        known.entry(kind).or_default().push(line.clone());
        last = line;
    }
    assert!(expected.next().is_none());
    assert_eq!(last["type"], "end");
}

fn json(made: &Made, options: &Options) {
    let whole: Value = serde_json::from_str(&made.text("json", options)).unwrap();
    assert_eq!(whole["title"].as_str(), options.title.as_deref());
    let samples = whole["samples"].as_array().unwrap();
    let mut expected = made.each_tick();
    for (found, sample) in samples.iter().zip(&mut expected) {
        assert_eq!(found["name"], sample.thread.name);
        assert_eq!(found["weight_ns"], sample.weight_ns);
        let one_each = Options { inline: false, ..options.clone() };
        let frames = found["frames"].as_array().unwrap();
        assert_eq!(frames.len(), lines(&sample.stack.frames, &one_each));
        if let (Some(found), Some(frame)) = (frames.first(), sample.stack.frames.first()) {
            let shown = match frame.functions.len() {
                2.. if !options.inline => &frame.functions[frame.functions.len() - 1..],
                _ => &frame.functions[..],
            };
            assert_frame(found, frame, shown);
        }
    }
    assert_eq!(samples.len(), made.each_tick().count());
}

fn dump(made: &Made, options: &Options) {
    let text = made.text("dump", options);
    let starting = |start: &str| text.lines().filter(|line| line.starts_with(start)).count();
    let frames = |sample: &made::Tick<'_>| lines(&sample.stack.frames, options);
    assert_eq!(starting("  #"), made.each_tick().map(|sample| frames(&sample)).sum::<usize>());
    assert_eq!(starting("  [no stack]"), made.each_tick().filter(|sample| frames(sample) == 0).count());
    assert_eq!(starting("\""), made.each_tick().count());
    assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "{text:?}");
}

/// Files for viewers: the same stacks with the same weights in each.
fn pictures(made: &Made, options: &Options) {
    let mut expected = BTreeMap::new();
    for sample in made.each_tick().filter(|sample| sample.weight_ns > 0) {
        let leaf = usize::from(tells_state(made, options, sample.state));
        *expected.entry(lines(&sample.stack.frames, options).max(1) + leaf).or_insert(0) += sample.weight_ns;
    }
    let depths = |all: Vec<Weighted>, no_stack: usize| {
        let mut depths = BTreeMap::new();
        for each in all.into_iter().filter(|each| each.ns > 0) {
            assert!(each.stack.iter().all(|name| !name.is_empty()), "{each:?}");
            *depths.entry(each.stack.len().max(no_stack)).or_insert(0) += each.ns;
        }
        depths
    };
    assert_eq!(depths(viewers::speedscope(&made.text("speedscope", options)), 0), expected);
    assert_eq!(depths(viewers::html(&made.text("html", options)), 0), expected);
    let whole: u64 = expected.values().sum();
    let firefox = viewers::firefox(&made.text("firefox", options));
    assert_eq!(firefox.iter().map(|each| each.ns).sum::<u64>(), whole);
    assert_eq!(viewers::svg(&made.text("svg", options)).0, whole);
}
