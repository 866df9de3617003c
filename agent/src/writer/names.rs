//! From addresses to named frames, remembered per stack and per address.

use crate::locks::lock;
use crate::mappings::{Code, Mappings};
use crate::platform::process;
use crate::stack::{CodeAddress, RawStack};
use rustc_hash::FxHashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use swipr_debuginfo::symbolizer::{Detail, Lookup, Symbol, Symbolizer};
use swipr_formats::Recent;
use swipr_formats::model::{Frame, FrameKind, Function, Stack};
use swipr_unwind::frames::BEFORE_ELIDED;
use swipr_unwind::walk::Stop;

/// Stacks and addresses that are remembered; then it starts anew.
const MAX_STACKS: usize = 4096;
const MAX_FRAMES: usize = 65_536;

/// See the module's text. One a writer.
pub struct StackNames {
    symbolizer: Arc<Mutex<Symbolizer>>,
    symbolize: bool,
    /// What is left of the time that may be spent on lines and inlined functions.
    left: Duration,
    /// Addresses that were looked up without, because nothing was left.
    without_lines: u64,
    /// Of the very stack that a thread left, and of one like it.
    recent: Recent<RawStack, Arc<Stack>>,
    stacks: FxHashMap<Arc<RawStack>, Arc<Stack>>,
    frames: FxHashMap<CodeAddress, Frame>,
    /// What `frames` holds for.
    mappings: Option<Arc<Mappings>>,
}

impl StackNames {
    /// `symbolize`: look names up; else frames have their module only. When this thread has run for `at_most` to find
    /// lines and inlined functions, further frames have what the symbol tables say.
    pub fn new(symbolizer: Arc<Mutex<Symbolizer>>, symbolize: bool, at_most: Duration) -> StackNames {
        let (recent, stacks, frames, without_lines) = <_>::default();
        StackNames {
            symbolizer,
            symbolize,
            left: at_most,
            without_lines,
            recent,
            stacks,
            frames,
            mappings: None,
        }
    }

    /// Addresses whose lines were not looked up for want of time.
    pub fn without_lines(&self) -> u64 {
        self.without_lines
    }

    /// The stack with names.
    pub fn of(&mut self, raw: &Arc<RawStack>) -> Arc<Stack> {
        let mut recent = std::mem::take(&mut self.recent);
        let stack = recent.get_or_make(raw, || self.like(raw)).clone();
        self.recent = recent;
        stack
    }

    fn like(&mut self, raw: &Arc<RawStack>) -> Arc<Stack> {
        if let Some(stack) = self.stacks.get(raw) {
            return stack.clone();
        }
        let same_code = self.mappings.as_ref().is_some_and(|known| Arc::ptr_eq(known, &raw.mappings));
        if !same_code || self.frames.len() >= MAX_FRAMES {
            self.frames.clear();
            self.mappings = Some(raw.mappings.clone());
        }
        let mut frames: Vec<Frame> =
            raw.addresses().map(|address| self.frame(&raw.mappings, address)).collect();
        if raw.is_none() {
            frames.push(note("[not sampled]".into()));
        }
        if raw.elided > 0 {
            let at = BEFORE_ELIDED.min(frames.len());
            frames.insert(at, note(format!("[{} frames elided]", raw.elided)));
        }
        if raw.stop != Stop::Root {
            frames.push(note(format!("[truncated: {}]", raw.stop.text())));
        }
        let stack = Arc::new(Stack { frames });
        if self.stacks.len() >= MAX_STACKS {
            self.stacks.clear();
        }
        self.stacks.insert(raw.clone(), stack.clone());
        stack
    }

    fn frame(&mut self, mappings: &Mappings, address: CodeAddress) -> Frame {
        if let Some(frame) = self.frames.get(&address) {
            return frame.clone();
        }
        // A call may be the last instruction of its mapping.
        let inside = if address.exact { address.address } else { address.address.saturating_sub(1) };
        let code = mappings.find(inside);
        let functions = code.map_or_else(|| Arc::from([]), |code| self.functions(code, address));
        let frame = Frame {
            address: address.address,
            kind: if code.is_none_or(|code| code.symbols.is_some()) {
                FrameKind::Native
            } else {
                FrameKind::Jit
            },
            module: code.map(|code| code.module.clone()),
            functions,
        };
        self.frames.insert(address, frame.clone());
        frame
    }

    fn functions(&mut self, code: &Code, address: CodeAddress) -> Arc<[Function]> {
        let Some(symbols) = code.symbols.as_ref().filter(|_| self.symbolize) else { return Arc::from([]) };
        let lookup = if address.exact { Lookup::Pc } else { Lookup::ReturnAddress };
        let in_file = address.address.wrapping_sub(symbols.bias);
        let detail = if self.left.is_zero() { Detail::Names } else { Detail::Lines };
        self.without_lines += u64::from(detail == Detail::Names);
        let Some(mut symbolizer) = lock(&self.symbolizer) else { return Arc::from([]) };
        let begun = process::thread_cpu();
        let found =
            symbolizer.resolve_with(&symbols.key, in_file, lookup, detail).iter().map(function).collect();
        self.left = self.left.saturating_sub(process::thread_cpu().saturating_sub(begun));
        found
    }
}

fn function(symbol: &Symbol) -> Function {
    Function {
        name: symbol.name.clone(),
        mangled: symbol.mangled.clone(),
        offset: symbol.offset,
        file: symbol.file.clone(),
        line: symbol.line,
    }
}

fn note(text: String) -> Frame {
    let function = Function { name: text.into(), mangled: None, offset: 0, file: None, line: None };
    Frame { address: 0, kind: FrameKind::Note, module: None, functions: Arc::from([function]) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mappings::Tables;
    use swipr_debuginfo::symbolizer::Budget;

    #[test]
    fn when_the_time_is_used_up_frames_have_names_without_lines_and_are_counted() {
        swipr_unwind::memory::set_process(process::pid() as i32);
        let mut tables = Tables::new(-1);
        tables.refresh();
        let here =
            when_the_time_is_used_up_frames_have_names_without_lines_and_are_counted as *const () as u64;
        let symbolizer = Arc::new(Mutex::new(Symbolizer::new(Budget::default())));
        let named = |at_most| {
            let mut names = StackNames::new(symbolizer.clone(), true, at_most);
            let frame = names.frame(tables.mappings(), CodeAddress { address: here, exact: true });
            let function = frame.functions.last().unwrap().clone();
            assert!(function.name.contains("when_the_time_is_used_up"), "{function:?}");
            (function.line.is_some(), names.without_lines())
        };
        for _ in 0..2 {
            assert_eq!(named(Duration::ZERO), (false, 1));
            assert_eq!(named(Duration::from_secs(3600)), (true, 0));
        }
    }
}
