//! Names for frames that have none.

use crate::recording::Recording;
use crate::resolver::Resolver;
use crate::search::SearchPath;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use swipr_formats::model::{Frame, FrameKind, Function, Module, Stack};
use swipr_symbols::first_functions::{is_first, is_signal_return};
use swipr_symbols::symbolizer::{Budget, Lookup, ObjectKey, Symbol, Symbolizer};

/// What became of a recording's frames.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Named {
    /// Addresses that have a name now.
    pub named: u64,
    /// Modules for which there is a file that does not know some of their addresses.
    pub unknown: Vec<Arc<Module>>,
    /// Modules for which there is no file.
    pub missing: Vec<Arc<Module>>,
}

/// Gives names, lines and inlined functions to frames of object files that have none.
pub fn symbolize(recording: &mut Recording, search: &SearchPath, budget: Budget) -> Named {
    symbolize_by(recording, search, &mut symbolizer(search, budget))
}

/// This crate's own, for these directories.
pub(crate) fn symbolizer(search: &SearchPath, budget: Budget) -> Symbolizer {
    let mut symbolizer = Symbolizer::new(budget);
    symbolizer.add_debug_roots(search.directories());
    symbolizer
}

/// As [`symbolize`], with another resolver.
pub fn symbolize_by(recording: &mut Recording, search: &SearchPath, resolver: &mut dyn Resolver) -> Named {
    let biases = std::mem::take(&mut recording.biases);
    let (places, known, outcome) = <_>::default();
    let mut names = Names { search, resolver, biases, places, known, outcome };
    for stack in &mut recording.stacks {
        *stack = Arc::new(names.stack(stack));
    }
    recording.biases = names.biases;
    names.outcome
}

/// A module's file, and what to subtract from an address to get the one in the file.
pub(crate) type Place = (ObjectKey, u64);

struct Names<'a> {
    search: &'a SearchPath,
    resolver: &'a mut dyn Resolver,
    biases: HashMap<Arc<Module>, u64>,
    places: HashMap<Arc<Module>, Option<Place>>,
    /// What was found, by the module's place in memory, the address, and whether it is exact.
    known: HashMap<(usize, u64, bool), Arc<[Function]>>,
    outcome: Named,
}

impl Names<'_> {
    /// The stack with names. It ends at its thread's first function.
    fn stack(&mut self, stack: &Stack) -> Stack {
        // The innermost frame was interrupted, unless the stack was cut there.
        let mut is_exact = true;
        let mut frames = Vec::with_capacity(stack.frames.len());
        let mut rest = stack.frames.iter();
        while let Some(frame) = rest.next() {
            let frame = self.frame(frame, is_exact);
            let name = frame.functions.last().map_or("", |function| &function.name);
            let (is_last, is_return) = (!is_exact && is_first(name), is_signal_return(name));
            frames.push(frame);
            is_exact = is_return;
            if is_last {
                frames.extend(outermost_remarks(rest.as_slice()).cloned());
                break;
            }
        }
        Stack { frames }
    }

    fn frame(&mut self, frame: &Frame, is_exact: bool) -> Frame {
        let is_nameless = frame.functions.is_empty() || self.may_have_a_better_name(frame);
        let wanted = frame.kind == FrameKind::Native && is_nameless;
        let Some(module) = frame.module.as_ref().filter(|_| wanted) else { return frame.clone() };
        let seen = (Arc::as_ptr(module).addr(), frame.address, is_exact);
        let functions = match self.known.get(&seen) {
            Some(known) => Arc::clone(known),
            None => {
                let Some((key, bias)) = self.place(module) else { return frame.clone() };
                let found = self.functions(&key, frame.address.wrapping_sub(bias), is_exact);
                self.known.insert(seen, Arc::clone(&found));
                found
            }
        };
        if !is_by_address(&functions, module) {
            self.outcome.named += 1;
        } else if !self.outcome.unknown.contains(module) {
            self.outcome.unknown.push(module.clone());
        }
        let functions = if functions.is_empty() { frame.functions.clone() } else { functions };
        Frame { functions, ..frame.clone() }
    }

    /// Whether it was named by its address where it was recorded (`module+0x…`), and there are
    /// directories that may know more.
    fn may_have_a_better_name(&self, frame: &Frame) -> bool {
        let module = frame.module.as_ref().filter(|_| !self.search.directories().is_empty());
        module.is_some_and(|module| is_by_address(&frame.functions, module))
    }

    fn functions(&mut self, key: &ObjectKey, address: u64, is_exact: bool) -> Arc<[Function]> {
        // The kernel made the address that a handler returns to: no call was made from before it.
        let mut is_made_by_kernel = || {
            let exact = self.resolver.name(key, address);
            exact.is_some_and(|it| it.offset == 0 && is_signal_return(&it.name))
        };
        let lookup = if is_exact || is_made_by_kernel() { Lookup::Pc } else { Lookup::ReturnAddress };
        self.resolver.resolve(key, address, lookup).iter().map(function).collect()
    }

    fn place(&mut self, module: &Arc<Module>) -> Option<Place> {
        if let Some(known) = self.places.get(module) {
            return known.clone();
        }
        let place = place_of(module, self.search, self.biases.get(module).copied());
        if place.is_none() {
            self.outcome.missing.push(module.clone());
        }
        self.places.insert(module.clone(), place.clone());
        place
    }
}

/// Whether functions have no names but those of the kind `module+0x…`.
fn is_by_address(functions: &[Function], module: &Module) -> bool {
    let file = module.path.rsplit('/').next().unwrap_or_default();
    let mut offsets = functions.iter().map(|function| function.name.strip_prefix(file));
    offsets.all(|offset| offset.is_some_and(|offset| offset.starts_with("+0x")))
}

/// A module's file, and what to subtract from an address of the recording to get the one in the
/// file.
pub(crate) fn place_of(module: &Module, search: &SearchPath, bias: Option<u64>) -> Option<Place> {
    let (path, file) = search.find(module)?;
    let bias = match bias {
        Some(bias) => bias,
        None => {
            let length = module.end.saturating_sub(module.start).max(1);
            let part = module.file_offset..module.file_offset.saturating_add(length);
            module.start.wrapping_sub(file.code_address(part).or_else(|| file.first_code_address())?)
        }
    };
    let path = Path::new(&path).canonicalize().ok()?;
    Some((ObjectKey::at(&path.to_string_lossy(), &module.build_id), bias))
}

/// What is remarked of the whole stack, as its process. It is not truncated.
fn outermost_remarks(frames: &[Frame]) -> impl Iterator<Item = &Frame> {
    let count = frames.iter().rev().take_while(|frame| frame.kind == FrameKind::Note).count();
    let remarks = frames.iter().skip(frames.len() - count);
    remarks.filter(|frame| !frame.functions.iter().any(|text| text.name.starts_with("[truncated: ")))
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
