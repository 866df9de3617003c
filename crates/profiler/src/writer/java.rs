//! Puts the methods of Java in the places of the native frames that run them.

use super::interpreted::frame_at;
use super::javascript::mark_cut;
use crate::stack::RawStack;
use swipr_formats::model::{Frame, Language};
use swipr_runtimes::merge::RuntimeCode;

/// `native` are the frames of `raw` with their names, leaf first; `code`: where those of Java are.
pub fn insert(raw: &RawStack, code: &RuntimeCode, native: &mut Vec<Frame>) {
    let all = std::mem::take(native);
    let is_exact: Vec<bool> = raw.addresses().map(|address| address.exact).collect();
    let mut methods = raw.interpreted.frames.iter().peekable();
    for (at, frame) in all.into_iter().enumerate() {
        // The innermost first: those that were inlined.
        let mut here = vec![];
        while let Some(method) = methods.next_if(|method| method.offset as usize == at) {
            here.push(method);
        }
        let is_exact = is_exact.get(at).is_some_and(|&is_exact| is_exact);
        // A part of the machine by which methods call one another; a method that is being entered.
        let is_between =
            code.cold_part.contains(&frame.address) && (!is_exact || code.evaluator.contains(&frame.address));
        native.extend(here.iter().filter_map(|method| {
            let code = method.code.as_ref()?;
            let line = method.place.and_then(|bytecode| code.line(bytecode as i32));
            frame_at(method, (code.name.clone(), line), Language::Java, frame.address)
        }));
        if here.is_empty() && !is_between {
            native.push(frame);
        }
    }
    mark_cut(raw, native);
}
