//! Puts the methods of Java in the places of the native frames that run them.

use super::interpreted::frame_at;
use super::javascript::mark_cut;
use super::names::note;
use crate::interpreters::InterpretedFrame;
use crate::stack::RawStack;
use swipr_formats::model::{Frame, FrameKind, Language};
use swipr_runtimes::merge::RuntimeCode;

/// In place of methods whose code was dropped before the sampler has seen it.
const GONE: &str = "[methods whose code is gone]";
/// In place of methods that a virtual thread has not taken back to its stack since it waited: a
/// stub does that when a method returns.
const IN_HEAP: &str = "[methods still in the heap]";
/// What runs the methods of a virtual thread.
const CONTINUATION: &str = "jdk.internal.vm.Continuation.";

/// `native` are the frames of `raw` with their names, leaf first; `code`: where those of Java are.
pub fn insert(raw: &RawStack, code: &RuntimeCode, native: &mut Vec<Frame>) {
    let is_of_java = |frame: &Frame| code.cold_part.contains(&frame.address);
    let is_continuation = |method: &InterpretedFrame| {
        method.code.as_ref().is_some_and(|code| code.name.starts_with(CONTINUATION))
    };
    let is_method = |frame: &Frame| matches!(frame.kind, FrameKind::Interpreted(_));
    let all = std::mem::take(native);
    let is_exact: Vec<bool> = raw.addresses().map(|address| address.exact).collect();
    let mut methods = raw.interpreted.frames.iter().peekable();
    let mut all = all.into_iter().enumerate().peekable();
    while let Some((at, frame)) = all.next() {
        let mut has_methods = false;
        // The innermost first: those that were inlined.
        while let Some(method) = methods.next_if(|method| method.offset as usize == at) {
            has_methods = true;
            native.extend(method.code.as_ref().and_then(|code| {
                let line = method.place.and_then(|bytecode| code.line(bytecode as i32));
                frame_at(method, (code.name.clone(), line), Language::Java, frame.address)
            }));
        }
        let is_exact = is_exact.get(at).is_some_and(|&is_exact| is_exact);
        let is_interpreter = code.evaluator.contains(&frame.address);
        if has_methods {
            continue;
        }
        // A part of the machine by which methods call one another; a method that is being entered.
        if !(is_of_java(&frame) && (!is_exact || is_interpreter)) {
            native.push(frame);
        } else if !is_interpreter
            && all.peek().is_some_and(|(_, outer)| is_of_java(outer))
            && native.last().is_some_and(is_method)
        {
            // No method returns to such a part.
            let is_in_heap = methods.peek().is_some_and(|outer| is_continuation(outer));
            native.push(note(if is_in_heap { IN_HEAP } else { GONE }.into()));
        }
    }
    mark_cut(raw, native);
}
