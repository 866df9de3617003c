//! Puts the functions of JavaScript in the places of the native frames that run them.

use super::interpreted::{CUT, frame_at};
use super::names::note;
use super::source_lines::SourceLines;
use crate::interpreters::InterpretedFrame;
use crate::stack::RawStack;
use swipr_formats::model::{Frame, FrameKind, Language};
use swipr_runtimes::code::ANONYMOUS;

/// Of V8's own functions, those that run a function of JavaScript in that one's frame: the
/// interpreter, and what it does for one instruction.
const INTERPRETER: &str = "Builtins_InterpreterEntryTrampoline";
const INSTRUCTION: &str = "Handler";
/// Of V8's own functions, those by which C++ enters JavaScript.
const ENTRY: &str = "Builtins_JSEntry";

/// `native` are the frames of `raw` with their names, leaf first.
pub fn insert(raw: &RawStack, native: &mut Vec<Frame>, sources: &mut SourceLines) {
    let all = std::mem::take(native);
    let is_exact: Vec<bool> = raw.addresses().map(|address| address.exact).collect();
    let mut functions = raw.interpreted.frames.iter().peekable();
    for (at, frame) in all.into_iter().enumerate() {
        // The innermost first: those that were inlined.
        let mut here = vec![];
        while let Some(function) = functions.next_if(|function| function.offset as usize == at) {
            here.push(function);
        }
        let is_leaf = is_exact.get(at).is_some_and(|&is_exact| is_exact);
        let stands_for = if here.is_empty() { None } else { Some(stands_for(&frame, is_leaf)) };
        let address = frame.address;
        match stands_for {
            None => native.extend(Some(frame).filter(|frame| !name_of(frame).starts_with(ENTRY))),
            Some(StandsFor::Named) => {
                native.push(frame);
                continue;
            }
            Some(StandsFor::Function) => {}
            Some(StandsFor::Itself) => native.push(frame),
        }
        native.extend(here.into_iter().filter_map(|function| named(function, address, sources)));
    }
    mark_cut(raw, native);
}

/// Says where functions are missing, if some are.
pub fn mark_cut(raw: &RawStack, native: &mut Vec<Frame>) {
    if raw.interpreted.is_cut {
        let is_function = |frame: &Frame| matches!(frame.kind, FrameKind::Interpreted(_));
        let behind = native.iter().rposition(is_function).map_or(0, |last| last + 1);
        native.insert(behind, note(CUT.into()));
    }
}

/// What a native frame is, to which a function of JavaScript belongs.
enum StandsFor {
    /// That function.
    Function,
    /// That function, and it has a name already, by what the program writes for profilers.
    Named,
    /// A function of V8's, which has no frame of its own.
    Itself,
}

fn stands_for(frame: &Frame, is_leaf: bool) -> StandsFor {
    let name = name_of(frame);
    match frame.kind {
        FrameKind::Jit if name.is_empty() => StandsFor::Function,
        FrameKind::Jit => StandsFor::Named,
        _ if !is_leaf || name.is_empty() => StandsFor::Function,
        _ if name.starts_with(INTERPRETER) || name.ends_with(INSTRUCTION) => StandsFor::Function,
        _ => StandsFor::Itself,
    }
}

fn name_of(frame: &Frame) -> &str {
    frame.functions.last().map_or("", |function| &function.name)
}

/// `None`: the function is only being entered.
fn named(function: &InterpretedFrame, address: u64, sources: &mut SourceLines) -> Option<Frame> {
    let code = function.code.as_ref()?;
    let mut line = |place| code.source().and_then(|source| sources.line(&code.file, source, place));
    let name = match &*code.name {
        ANONYMOUS => anonymous(&code.file, line(None)).into(),
        _ => code.name.clone(),
    };
    frame_at(function, (name, line(function.place)), Language::JavaScript, address)
}

/// Functions without a name are told apart by where they begin.
fn anonymous(file: &str, line: Option<u32>) -> String {
    let name = if file.starts_with('/') { file.rsplit('/').next().unwrap_or(file) } else { file };
    match (name, line) {
        ("", _) => ANONYMOUS.to_owned(),
        (name, None) => format!("{ANONYMOUS} {name}"),
        (name, Some(line)) => format!("{ANONYMOUS} {name}:{line}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use swipr_formats::model::Function;

    fn frame(kind: FrameKind, name: &str) -> Frame {
        let function = Function { name: name.into(), mangled: None, offset: 0, file: None, line: None };
        let functions = Some(function).filter(|_| !name.is_empty());
        Frame { address: 1, kind, module: None, functions: functions.into_iter().collect::<Arc<[_]>>() }
    }

    #[test]
    fn functions_without_a_name_have_a_place() {
        let names = [("/srv/a.mjs", Some(3)), ("node:fs", None), ("", None), ("", Some(1))];
        let names = names.map(|(file, line)| anonymous(file, line));
        assert_eq!(names, ["<anonymous> a.mjs:3", "<anonymous> node:fs", "<anonymous>", "<anonymous>"]);
    }

    #[test]
    fn a_native_frame_is_its_function_unless_it_has_a_name_of_its_own() {
        let word = |kind, name: &str, is_leaf| match stands_for(&frame(kind, name), is_leaf) {
            StandsFor::Function => "function",
            StandsFor::Named => "named",
            StandsFor::Itself => "itself",
        };
        let (jit, native) = (FrameKind::Jit, FrameKind::Native);
        assert_eq!(word(jit, "", true), "function");
        assert_eq!(word(jit, "JS:*f /a.js:1:1", false), "named");
        assert_eq!(word(native, "Builtins_InterpreterEntryTrampoline", false), "function");
        assert_eq!(word(native, "Builtins_AddHandler", true), "function");
        assert_eq!(word(native, "Builtins_StringAdd_CheckNone", true), "itself");
        assert_eq!(word(native, "", true), "function");
    }
}
