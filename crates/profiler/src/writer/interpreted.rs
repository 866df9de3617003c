//! Puts the frames of an interpreter between the native ones.

use super::names::note;
use super::source_lines::SourceLines;
use super::{java, javascript};
use crate::interpreters::InterpretedFrame;
use crate::stack::RawStack;
use std::sync::Arc;
use swipr_formats::ELIDED;
use swipr_formats::model::{Frame, FrameKind, Function, Language};
use swipr_runtimes::code::Code;
use swipr_runtimes::merge::{Parts, Place, RuntimeCode, RuntimeLanguage, merge};
use swipr_unwind::frames::BEFORE_ELIDED;

/// Behind the frames of a chain that was cut, or whose place among the native frames is not known.
pub const CUT: &str = "[outer interpreted frames left out]";
const UNCERTAIN: &str = "[native frames between these unknown]";
/// Of CPython's perf trampolines, each of which represents a Python function.
const TRAMPOLINE: &str = "py::";
/// A name, and no file's.
const CONSTRUCTOR: &str = "__init__";
/// The address of a remark.
const NO_CODE: u64 = 0;

/// How the file is named that switches between greenlets (`greenlet`, gevent, eventlet): from 1.0
/// on, and before.
const GREENLETS: [&str; 2] = ["_greenlet.", "greenlet."];

/// `native` are the frames of `raw` with their names, leaf first.
pub fn insert(raw: &RawStack, is_complete: bool, native: &mut Vec<Frame>, sources: &mut SourceLines) {
    let code = raw.mappings.interpreter.as_deref().filter(|_| !raw.interpreted.frames.is_empty());
    match code.map(|code| (code, code.language)) {
        None => {}
        Some((_, RuntimeLanguage::JavaScript)) => javascript::insert(raw, native, sources),
        Some((code, RuntimeLanguage::Java)) => java::insert(raw, code, native),
        Some((code, _)) => return insert_merged(raw, code, is_complete, native),
    }
    mark_elided(raw, native);
}

/// Puts a remark where native frames were left out, if so. Returns its number among all frames.
pub fn mark_elided(raw: &RawStack, native: &mut Vec<Frame>) -> Option<usize> {
    if !raw.is_cut || native.len() <= BEFORE_ELIDED {
        return None;
    }
    native.insert(BEFORE_ELIDED, note(ELIDED.to_owned()));
    Some(BEFORE_ELIDED)
}

/// Of languages whose functions have no native frames of their own.
fn insert_merged(raw: &RawStack, code: &RuntimeCode, is_complete: bool, native: &mut Vec<Frame>) {
    let interpreted = &raw.interpreted;
    let inside = raw.addresses().zip(native.iter()).map(|(address, frame)| match frame.kind {
        // PHP jumps to what it compiled from its evaluator, which has the frame.
        FrameKind::Jit if is_jumped_to(frame, is_complete, code.language) => code.evaluator.start,
        _ => address.inside(),
    });
    let mut addresses: Vec<u64> = inside.collect();
    let gap = mark_elided(raw, native);
    if let Some(gap) = gap {
        addresses.insert(gap, NO_CODE);
    }
    let gap = gap.or_else(|| behind_compiled(native, &mut addresses, code.language));
    addresses.truncate(frames_of_greenlet(native, |at| addresses.get(at).is_some_and(|pc| code.runs(*pc))));
    let entries: Vec<bool> = interpreted.frames.iter().map(|frame| frame.is_entry).collect();
    let is_cut = interpreted.is_cut;
    let merge = |native: &[u64]| merge(Parts { native, is_complete, entries: &entries, is_cut, gap }, code);
    let mut merged = merge(&addresses);
    if merged.is_uncertain && code.language == RuntimeLanguage::Python {
        let with_compiled = merge(&calls_of_compiled(native, &addresses, code));
        merged = if with_compiled.is_uncertain { merged } else { with_compiled };
    }
    let language = language_of(code.language);
    // Ruby's compiled code notes an instruction only when it calls something.
    let is_in_compiled = language == Language::Ruby && native.first().is_some_and(is_compiled);
    let all = std::mem::take(native);
    let frame = |place: Place| match place {
        Place::Native(at) => all.get(at).filter(|frame| !is_trampoline(frame)).cloned(),
        Place::Interpreted(at) => interpreted.frames.get(at).and_then(|frame| {
            // As of a return address: readers look up the byte before.
            frame_of(frame, at > 0 || !is_in_compiled, language, code.evaluator.start + 1)
        }),
    };
    let remark = match (merged.is_uncertain, interpreted.is_cut) {
        (true, _) => Some(UNCERTAIN),
        (false, true) => Some(CUT),
        (false, false) => None,
    };
    let last = merged.places.iter().rposition(|place| matches!(place, Place::Interpreted(_)));
    for (at, place) in merged.places.into_iter().enumerate() {
        native.extend(frame(place));
        native.extend(remark.filter(|_| last == Some(at)).map(|remark| note(remark.into())));
    }
    native.extend(all.into_iter().skip(addresses.len()));
}

fn language_of(language: RuntimeLanguage) -> Language {
    match language {
        RuntimeLanguage::Python => Language::Python,
        RuntimeLanguage::Perl => Language::Perl,
        RuntimeLanguage::Php => Language::Php,
        RuntimeLanguage::Ruby => Language::Ruby,
        RuntimeLanguage::JavaScript => Language::JavaScript,
        RuntimeLanguage::Java => Language::Java,
    }
}

/// How many frames are of the greenlet that runs; all, if none does. The native stack continues
/// with whatever is below it, but the chain of frames ends with the greenlet. `runs`: whether the
/// frame with this number is a call of the evaluator.
fn frames_of_greenlet(native: &[Frame], runs: impl Fn(usize) -> bool) -> usize {
    let is_switch = |frame: &Frame| {
        let file = frame.module.as_ref().and_then(|module| module.path.rsplit('/').next());
        file.is_some_and(|file| GREENLETS.iter().any(|start| file.starts_with(start)))
    };
    let after_a_call = (0..native.len()).skip_while(|&at| !runs(at));
    after_a_call.into_iter().find(|&at| native.get(at).is_some_and(is_switch)).unwrap_or(native.len())
}

/// Whether a frame of compiled code represents a call of the evaluator. One that has a name keeps
/// it; and of a stack that ends at compiled code there may be a frame that is none.
fn is_jumped_to(frame: &Frame, is_complete: bool, language: RuntimeLanguage) -> bool {
    is_complete && language == RuntimeLanguage::Php && frame.functions.is_empty()
}

/// CPython 3.14 has no frame for what it compiled, and no unwind information: behind that the walk
/// leaves out the call of the evaluator that jumped there. Compiled code is such a call then.
fn calls_of_compiled(native: &[Frame], addresses: &[u64], code: &RuntimeCode) -> Vec<u64> {
    let is_call = |at: usize| {
        let caller = native.get(at + 1).zip(addresses.get(at + 1));
        let is_outermost = caller.is_some_and(|(frame, pc)| !is_compiled(frame) && !code.runs(*pc));
        is_outermost && native.get(at).is_some_and(|frame| is_compiled(frame) && frame.functions.is_empty())
    };
    let all = addresses.iter().enumerate();
    all.map(|(at, pc)| if is_call(at) { code.evaluator.start } else { *pc }).collect()
}

/// Ruby's compiled code has neither unwind information nor frame pointers: the walk may have left
/// out calls of the evaluator behind it. Returns where the first such place is; what calls there
/// are up to the last one is not known.
fn behind_compiled(native: &[Frame], addresses: &mut [u64], language: RuntimeLanguage) -> Option<usize> {
    let first = native.iter().position(is_compiled).filter(|_| language == RuntimeLanguage::Ruby)? + 1;
    let last = native.iter().rposition(is_compiled)? + 1;
    addresses.get_mut(first..last)?.fill(NO_CODE);
    Some(first)
}

fn is_compiled(frame: &Frame) -> bool {
    frame.kind == FrameKind::Jit
}

fn is_trampoline(frame: &Frame) -> bool {
    let function = frame.functions.last();
    frame.kind == FrameKind::Jit && function.is_some_and(|function| function.name.starts_with(TRAMPOLINE))
}

/// A function as a frame; `address`: of the native code that runs it.
fn frame_of(frame: &InterpretedFrame, has_line: bool, language: Language, address: u64) -> Option<Frame> {
    let code = frame.code.as_ref().filter(|code| !is_constructors_own(code))?;
    let line = code.line(frame.offset).filter(|_| has_line);
    frame_at(frame, (code.name.clone(), line), language, address)
}

/// Whether CPython itself runs it, around `__init__` (from 3.13 on): no traceback shows it.
fn is_constructors_own(code: &Code) -> bool {
    *code.name == *CONSTRUCTOR && *code.file == *CONSTRUCTOR
}

/// The same, with that name and line.
pub fn frame_at(
    frame: &InterpretedFrame,
    (name, line): (Arc<str>, Option<u32>),
    language: Language,
    address: u64,
) -> Option<Frame> {
    let code = frame.code.as_ref()?;
    let function = Function {
        name,
        mangled: None,
        offset: 0,
        file: Some(code.file.clone()).filter(|file| !file.is_empty()),
        line,
    };
    Some(Frame {
        address,
        kind: FrameKind::Interpreted(language),
        module: None,
        functions: Arc::from([function]),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use swipr_formats::model::Module;

    /// Regression: a greenlet's functions stood before the code that had switched to it.
    #[test]
    fn the_frames_of_a_greenlet_end_where_it_was_switched_to() {
        let module = |file: &str| Module {
            path: format!("/lib/{file}"),
            start: 0,
            end: 0,
            file_offset: 0,
            base: 0,
            build_id: vec![],
        };
        let frame = |file: &str| Frame {
            address: 1,
            kind: FrameKind::Native,
            module: Some(Arc::new(module(file))),
            functions: Arc::default(),
        };
        let frames = |files: &[&str]| files.iter().map(|file| frame(file)).collect::<Vec<_>>();
        let python = "python3.8";
        let of_versions =
            ["_greenlet.cpython-311-x86_64-linux-gnu.so", "greenlet.cpython-38-x86_64-linux-gnu.so"];
        for greenlet in of_versions {
            // Leaf first; the evaluator is called at these numbers.
            let in_one = frames(&[python, python, greenlet, greenlet, python]);
            assert_eq!(frames_of_greenlet(&in_one, |at| [0, 4].contains(&at)), 2);
            let switching = frames(&[greenlet, python, greenlet, python]);
            assert_eq!(frames_of_greenlet(&switching, |at| [1, 3].contains(&at)), 2);
            let in_none = frames(&[greenlet, python, python]);
            assert_eq!(frames_of_greenlet(&in_none, |at| at == 1), 3);
        }
    }

    /// Regression: with `--yjit` a thread that waited below compiled code had its outermost
    /// function in the place of the innermost one.
    #[test]
    fn behind_compiled_code_of_ruby_calls_of_the_evaluator_may_be_missing() {
        let frame = |kind| Frame { address: 1, kind, module: None, functions: Arc::default() };
        let kinds = [FrameKind::Native, FrameKind::Jit, FrameKind::Native, FrameKind::Jit, FrameKind::Native];
        let native = kinds.map(frame);
        let mut addresses = [1, 2, 3, 4, 5];
        assert_eq!(behind_compiled(&native, &mut addresses, RuntimeLanguage::Perl), None);
        assert_eq!(behind_compiled(&native, &mut addresses, RuntimeLanguage::Ruby), Some(2));
        assert_eq!(addresses, [1, 2, NO_CODE, NO_CODE, 5]);
        assert_eq!(behind_compiled(&native[..1], &mut addresses, RuntimeLanguage::Ruby), None);
    }

    /// Regression: of loops that CPython 3.14 had compiled 67 % of the samples had no function of
    /// Python.
    #[test]
    fn compiled_code_of_python_is_a_call_if_its_caller_is_none() {
        let frame = |kind| Frame { address: 1, kind, module: None, functions: Arc::default() };
        let kinds = [FrameKind::Jit, FrameKind::Jit, FrameKind::Native, FrameKind::Jit, FrameKind::Native];
        let native = kinds.map(frame);
        let code = RuntimeCode { evaluator: 100..200, ..RuntimeCode::default() };
        assert_eq!(calls_of_compiled(&native, &[1, 2, 3, 4, 5], &code), [1, 100, 3, 100, 5]);
        assert_eq!(calls_of_compiled(&native, &[1, 2, 3, 4, 150], &code), [1, 100, 3, 4, 150]);
        assert_eq!(calls_of_compiled(&native[..2], &[1, 2], &code), [1, 2]);
    }

    /// Regression: functions that PHP 8.3 and later had compiled were missing in whole stacks.
    #[test]
    fn compiled_code_of_php_stands_for_its_evaluator_in_whole_stacks_unless_it_has_a_name() {
        let frame = |functions: &[&str]| {
            let function = |name: &&str| Function {
                name: (*name).into(),
                mangled: None,
                offset: 0,
                file: None,
                line: None,
            };
            let functions = functions.iter().map(function).collect();
            Frame { address: 1, kind: FrameKind::Jit, module: None, functions }
        };
        let (compiled, named) = (frame(&[]), frame(&["TRACE-1$hot$4"]));
        assert!(is_jumped_to(&compiled, true, RuntimeLanguage::Php));
        assert!(!is_jumped_to(&compiled, false, RuntimeLanguage::Php));
        assert!(!is_jumped_to(&compiled, true, RuntimeLanguage::Ruby));
        assert!(!is_jumped_to(&named, true, RuntimeLanguage::Php));
    }
}
