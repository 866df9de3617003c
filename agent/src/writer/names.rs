//! From addresses to named frames, remembered per stack and per address.

use crate::locks::lock;
use crate::mappings::{Code, Mappings};
use crate::stack::{CodeAddress, RawStack};
use rustc_hash::FxHashMap;
use std::sync::{Arc, Mutex};
use swipr_debuginfo::symbolizer::{Lookup, Symbol, Symbolizer};
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
    /// Of the very stack that a thread left, and of one like it.
    recent: Recent<RawStack, Arc<Stack>>,
    stacks: FxHashMap<Arc<RawStack>, Arc<Stack>>,
    frames: FxHashMap<CodeAddress, Frame>,
    /// What `frames` holds for.
    mappings: Option<Arc<Mappings>>,
}

impl StackNames {
    /// `symbolize`: look names up; else frames have their module only.
    pub fn new(symbolizer: Arc<Mutex<Symbolizer>>, symbolize: bool) -> StackNames {
        let (recent, stacks, frames) = <_>::default();
        StackNames { symbolizer, symbolize, recent, stacks, frames, mappings: None }
    }

    /// The stack with names.
    pub fn of(&mut self, raw: &Arc<RawStack>) -> Arc<Stack> {
        let mut recent = std::mem::take(&mut self.recent);
        let stack = recent.get_or_make(raw, || self.like(raw)).clone();
        self.recent = recent;
        stack
    }

    /// There was this code.
    pub fn know(&mut self, mappings: &Arc<Mappings>) {
        let same_code = self.mappings.as_ref().is_some_and(|known| Arc::ptr_eq(known, mappings));
        if !same_code || self.frames.len() >= MAX_FRAMES {
            self.frames.clear();
            self.mappings = Some(mappings.clone());
        }
    }

    /// An address in code that is known of.
    pub fn known(&mut self, address: CodeAddress) -> Option<Frame> {
        let mappings = self.mappings.clone()?;
        Some(self.frame(&mappings, address))
    }

    /// All code that is known of.
    pub fn code(&self) -> impl Iterator<Item = &Code> {
        self.mappings.iter().flat_map(|mappings| mappings.all())
    }

    fn like(&mut self, raw: &Arc<RawStack>) -> Arc<Stack> {
        if let Some(stack) = self.stacks.get(raw) {
            return stack.clone();
        }
        self.know(&raw.mappings);
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

    fn functions(&self, code: &Code, address: CodeAddress) -> Arc<[Function]> {
        let Some(symbols) = code.symbols.as_ref().filter(|_| self.symbolize) else { return Arc::from([]) };
        let lookup = if address.exact { Lookup::Pc } else { Lookup::ReturnAddress };
        let in_file = address.address.wrapping_sub(symbols.bias);
        let Some(mut symbolizer) = lock(&self.symbolizer) else { return Arc::from([]) };
        symbolizer.resolve(&symbols.key, in_file, lookup).iter().map(function).collect()
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
