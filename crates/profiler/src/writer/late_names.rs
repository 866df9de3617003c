//! Symbolizes stacks that the flight recorder has kept as addresses.

use super::flight_recorder::Places;
use super::names::StackSymbolizer;
use crate::stack::CodeAddress;
use rustc_hash::FxHashMap;
use std::sync::Arc;
use swipr_formats::model::{Frame, FrameKind, Function, Stack};
use swipr_symbols::first_functions::{is_first, is_signal_return};

/// Symbolizes the stacks of one request.
pub struct LateNames {
    names: StackSymbolizer,
    places: Places,
    /// By pointer to the module, the address, and whether it is exact.
    known: FxHashMap<(usize, u64, bool), Arc<[Function]>>,
}

impl LateNames {
    /// Symbolizes by `names` the frames in modules whose places are set.
    pub fn new(names: StackSymbolizer) -> LateNames {
        LateNames { names, places: Places::default(), known: FxHashMap::default() }
    }

    /// Where the names of modules are found by now.
    pub fn set_places(&mut self, places: &Places) {
        self.places.clone_from(places);
    }

    /// Addresses whose lines were not looked up for want of time.
    pub fn without_lines(&self) -> u64 {
        self.names.without_lines()
    }

    /// The stack with names. It ends at its thread's first function.
    pub fn stack(&mut self, stack: Stack) -> Stack {
        let mut frames = Vec::with_capacity(stack.frames.len());
        // The innermost frame was interrupted, and so was a frame that a signal handler returns to.
        let mut is_exact = true;
        for frame in stack.frames {
            let frame = self.frame(frame, is_exact);
            let name = frame.functions.last().map_or("", |function| &function.name);
            let (is_last, is_return) = (!is_exact && is_first(name), is_signal_return(name));
            frames.push(frame);
            is_exact = is_return;
            if is_last {
                break;
            }
        }
        self.names.leave_shown(&mut frames);
        Stack { frames }
    }

    /// A frame with names; `is_exact`: its address is no return address of a call.
    fn frame(&mut self, frame: Frame, is_exact: bool) -> Frame {
        let is_unnamed = frame.kind == FrameKind::Native && frame.functions.is_empty();
        let Some(module) = frame.module.as_ref().filter(|_| is_unnamed) else { return frame };
        let key = (Arc::as_ptr(module).addr(), frame.address, is_exact);
        let functions = match self.known.get(&key) {
            Some(known) => known.clone(),
            None => {
                let Some(symbols) = self.places.get(module).cloned() else { return frame };
                let address = frame.address;
                let mut at = |exact| self.names.functions(&symbols, CodeAddress { address, exact });
                // The kernel sets the address that a handler returns to: there is no call before
                // it.
                let here = at(true);
                let is_begin = |function: &Function| function.offset == 0 && is_signal_return(&function.name);
                let found = if is_exact || here.last().is_some_and(is_begin) { here } else { at(false) };
                self.known.insert(key, found.clone());
                found
            }
        };
        Frame { functions, ..frame }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jit::JitCode;
    use crate::mappings::Tables;
    use crate::writer::NameSources;
    use std::sync::Mutex;
    use std::time::Duration;
    use swipr_os::process::{self, EpochClock};
    use swipr_server::recording::{ShownFrames, Symbolize};
    use swipr_symbols::symbolizer::{Budget, Symbolizer};

    #[test]
    fn kept_stacks_have_the_names_of_their_modules_and_remarks_stay() {
        swipr_unwind::memory::set_process(process::pid() as i32);
        let mut tables = Tables::new(-1);
        tables.refresh();
        let here = kept_stacks_have_the_names_of_their_modules_and_remarks_stay as *const () as u64;
        let code = tables.mappings().find(here).unwrap();
        let sources = NameSources {
            symbolizer: Arc::new(Mutex::new(Symbolizer::new(Budget::default()))),
            jit_code: Arc::new(Mutex::new(JitCode::new(1 << 20))),
            latest: Arc::default(),
            clock: EpochClock::now(),
        };
        let names =
            StackSymbolizer::new(sources, Symbolize::Now, ShownFrames::Merged, Duration::from_secs(3600));
        let places = Places::from_iter([(code.module.clone(), code.symbols.clone().unwrap())]);
        let mut late = LateNames::new(names);
        late.set_places(&places);
        let at =
            |address, module| Frame { address, kind: FrameKind::Native, module, functions: Arc::from([]) };
        let text = Function { name: "[cut]".into(), mangled: None, offset: 0, file: None, line: None };
        let note = Frame { address: 0, kind: FrameKind::Note, module: None, functions: Arc::from([text]) };
        let module = Some(code.module.clone());
        // The innermost frame is at the function's first byte. As a return address it would belong
        // to a call before the function.
        let frames = vec![at(here, module.clone()), at(here + 1, module), at(8, None), note.clone()];
        let named = late.stack(Stack { frames });
        let name = |frame: &Frame| frame.functions.last().map(|function| function.name.to_string());
        for frame in &named.frames[..2] {
            assert!(name(frame).unwrap().contains("kept_stacks_have"), "{named:?}");
        }
        assert_eq!((name(&named.frames[2]), &named.frames[3]), (None, &note));
    }
}
