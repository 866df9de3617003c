//! Remarks where a thread waits for CPython's lock, as the names of native frames say. Of a
//! stripped interpreter nothing is said. Not here: which thread holds the lock.

use super::names::note;
use crate::stack::RawStack;
use swipr_formats::model::{Frame, FrameKind, Function};
use swipr_runtimes::merge::RuntimeLanguage;

/// Of CPython, the function that waits for the lock; a compiler may have added a suffix.
const TAKE: &str = "take_gil";
/// Of the C library, what that function waits by.
const WAIT: &str = "pthread_cond_timedwait";
const REMARK: &str = "[waits for the GIL]";

/// `frames` have their names, leaf first, and functions of Python between them.
pub fn insert(raw: &RawStack, frames: &mut Vec<Frame>) {
    let python = raw.mappings.interpreter.as_ref();
    let python = python.filter(|code| code.language == RuntimeLanguage::Python);
    if let Some(at) = python.and_then(|code| caller_of_wait(frames, |pc| code.object.contains(&pc))) {
        frames.insert(at, note(REMARK.into()));
    }
}

/// The number of the frame from which the lock is waited for; `in_object`: whether an address is in
/// the interpreter's object.
fn caller_of_wait(frames: &[Frame], in_object: impl Fn(u64) -> bool) -> Option<usize> {
    let is_native = |frame: &&Frame| frame.kind == FrameKind::Native;
    let mut native = frames.iter().take_while(is_native).enumerate();
    native.find(|(_, frame)| has(frame, WAIT))?;
    let (at, _) = native.find(|(_, frame)| in_object(frame.address) && has(frame, TAKE))?;
    Some(at + 1)
}

/// Whether it is a call of that function, or has it inlined.
fn has(frame: &Frame, name: &str) -> bool {
    let is = |function: &Function| {
        function.name.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    frame.functions.iter().any(is)
}

#[cfg(test)]
mod tests {
    use super::*;
    use swipr_formats::model::Language;

    fn frame(address: u64, kind: FrameKind, names: &[&str]) -> Frame {
        let function =
            |name: &&str| Function { name: (*name).into(), mangled: None, offset: 0, file: None, line: None };
        Frame { address, kind, module: None, functions: names.iter().map(function).collect() }
    }

    /// As 3.6 to 3.13 have it.
    #[test]
    fn a_wait_is_told_by_the_function_that_takes_the_lock_in_the_interpreters_object() {
        let native = |address, names: &[&str]| frame(address, FrameKind::Native, names);
        let python = || frame(1, FrameKind::Interpreted(Language::Python), &["spin"]);
        let caller_of_wait = |frames: &[Frame]| caller_of_wait(frames, |pc| (10..20).contains(&pc));
        let futex = || native(90, &["__futex_abstimed_wait_common"]);
        let waits = [futex(), native(91, &["pthread_cond_timedwait"])];
        let stack = |more: &[Frame]| [&waits[..], more].concat();
        let inlined = native(12, &["take_gil", "PyEval_RestoreThread"]);
        assert_eq!(caller_of_wait(&stack(&[native(11, &["take_gil.constprop.0"]), python()])), Some(3));
        assert_eq!(caller_of_wait(&stack(&[native(13, &["PyCOND_TIMEDWAIT"]), inlined, python()])), Some(4));
        // Not: its way into the lock, another object's function, one of another name, and what the
        // caller's caller does.
        assert_eq!(caller_of_wait(&[native(11, &["take_gil"]), python()]), None);
        assert_eq!(caller_of_wait(&stack(&[native(50, &["take_gil"]), python()])), None);
        assert_eq!(caller_of_wait(&stack(&[native(11, &["take_gilded"]), python()])), None);
        assert_eq!(caller_of_wait(&stack(&[native(11, &["drop_gil"]), python()])), None);
        assert_eq!(caller_of_wait(&stack(&[python(), native(11, &["take_gil"])])), None);
    }
}
