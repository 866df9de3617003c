//! Puts the frames of an interpreter between the native ones.

use super::names::note;
use crate::interpreters::InterpretedFrame;
use crate::stack::RawStack;
use std::sync::Arc;
use swipr_formats::model::{Frame, FrameKind, Function, Language};
use swipr_runtimes::merge::{Parts, Place, RuntimeCode, RuntimeLanguage, merge};

/// Behind the frames of a chain that was cut, or whose place among the native frames is not known.
const CUT: &str = "[outer interpreted frames left out]";
const UNCERTAIN: &str = "[native frames between these not told]";
/// Of CPython's perf trampolines, each of which stands for a Python function.
const TRAMPOLINE: &str = "py::";

/// `native` are the frames of `raw` with their names, leaf first.
pub fn insert(raw: &RawStack, is_complete: bool, native: &mut Vec<Frame>) {
    let interpreted = &raw.interpreted;
    let Some(code) = raw.mappings.interpreter.as_deref().filter(|_| !interpreted.frames.is_empty()) else {
        return;
    };
    let addresses: Vec<u64> = raw.addresses().map(|address| address.inside()).collect();
    let entries: Vec<bool> = interpreted.frames.iter().map(|frame| frame.is_entry).collect();
    let merged = merge(
        Parts {
            native: addresses.get(..native.len()).unwrap_or(&addresses),
            // A frame that was left out may be the evaluator's.
            is_complete: is_complete && raw.elided == 0,
            entries: &entries,
            is_cut: interpreted.is_cut,
        },
        code,
    );
    let all = std::mem::take(native);
    let frame = |place: Place| match place {
        Place::Native(at) => all.get(at).filter(|frame| !is_trampoline(frame)).cloned(),
        Place::Interpreted(at) => interpreted.frames.get(at).and_then(|frame| frame_of(frame, code)),
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
}

fn is_trampoline(frame: &Frame) -> bool {
    let function = frame.functions.last();
    frame.kind == FrameKind::Jit && function.is_some_and(|function| function.name.starts_with(TRAMPOLINE))
}

fn frame_of(frame: &InterpretedFrame, runtime: &RuntimeCode) -> Option<Frame> {
    let code = frame.code.as_ref()?;
    let language = match runtime.language {
        RuntimeLanguage::Python => Language::Python,
        RuntimeLanguage::Perl => Language::Perl,
        RuntimeLanguage::Php => Language::Php,
    };
    let function = Function {
        name: code.name.clone(),
        mangled: None,
        offset: 0,
        file: Some(code.file.clone()).filter(|file| !file.is_empty()),
        line: code.line(frame.offset),
    };
    Some(Frame {
        // As of a return address: readers look up the byte before.
        address: runtime.evaluator.start + 1,
        kind: FrameKind::Interpreted(language),
        module: None,
        functions: Arc::from([function]),
    })
}
