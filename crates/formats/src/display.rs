//! Stacks as people see them: one frame a function, with its name, its kind and its file, whatever
//! its address. What a thread waits for is a frame, too. Not here: addresses (`raw_tree.rs`), and
//! drawing.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::category::{self, Class};
use crate::model::{Frame, FrameKind, Function, Header, Mode, Sample, Stack};
use crate::ptr_cache::PtrCache;
use crate::raw_tree::{Known, LEFT_OUT};
use crate::text_frames::{ELIDED, shown_functions, visible};
use crate::tree::{ROOT, Tree};
use crate::{Options, names, state};

/// A frame of a picture.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct DisplayFrame {
    pub(crate) name: Arc<str>,
    pub(crate) class: Class,
    /// The module's path; empty for remarks.
    pub(crate) module: Arc<str>,
    /// Empty where it is not known.
    pub(crate) file: Arc<str>,
    /// Only where lines are requested: then frames of different lines are different. 0: not known.
    pub(crate) line: u32,
}

impl DisplayFrame {
    /// A frame that is no code.
    pub(crate) fn note(text: &str, class: Class) -> DisplayFrame {
        let (module, file) = <_>::default();
        DisplayFrame { name: names::note(text).into(), class, module, file, line: 0 }
    }
}

/// See the module's text.
pub(crate) struct DisplayTree {
    options: Options,
    pid: u32,
    mode: Mode,
    pub(crate) tree: Tree<DisplayFrame>,
    /// What recorded frames are shown as, outermost function first.
    shown: FxHashMap<Known, Box<[u32]>>,
    recent: PtrCache<Stack, u32>,
}

impl DisplayTree {
    pub(crate) fn new(options: &Options) -> Self {
        let (shown, recent) = <_>::default();
        let options = options.clone();
        DisplayTree { options, pid: 0, mode: Mode::Wall, tree: Tree::new(), shown, recent }
    }

    pub(crate) fn begin(&mut self, header: &Header) {
        (self.pid, self.mode) = (header.pid, header.mode);
    }

    /// The node of a sample's stack, with what its thread waits for behind the leaf.
    pub(crate) fn node(&mut self, sample: &Sample<'_>) -> u32 {
        let mut recent = std::mem::take(&mut self.recent);
        let node = *recent.get_or_make(sample.stack, || self.of_stack(sample.stack));
        self.recent = recent;
        match state::leaf(sample.state, self.mode, &self.options) {
            Some(leaf) => self.behind(node, DisplayFrame::note(&leaf, Class::Waiting)),
            None => node,
        }
    }

    /// The node behind `node` with that frame.
    pub(crate) fn behind(&mut self, node: u32, frame: DisplayFrame) -> u32 {
        let frame = self.tree.frame(frame);
        self.tree.child(node, frame)
    }

    fn of_stack(&mut self, stack: &Arc<Stack>) -> u32 {
        let options = self.options.clone();
        let (inner, is_cut, outer) = visible(stack, &options);
        let mut path = Vec::new();
        for frame in outer.iter().rev() {
            self.of_frame(frame, &mut path);
        }
        if is_cut {
            path.push(self.tree.frame(DisplayFrame::note(ELIDED, Class::Note)));
        }
        for frame in inner.iter().rev() {
            self.of_frame(frame, &mut path);
        }
        match self.tree.path(path.into_iter(), || DisplayFrame::note(LEFT_OUT, Class::Note)) {
            ROOT => self.behind(ROOT, DisplayFrame::note("[no stack]", Class::Note)),
            node => node,
        }
    }

    fn of_frame(&mut self, frame: &Frame, path: &mut Vec<u32>) {
        let known = Known(frame.clone());
        if let Some(shown) = self.shown.get(&known) {
            return path.extend_from_slice(shown);
        }
        let functions = shown_functions(frame, &self.options).iter().enumerate();
        let mut all: Vec<DisplayFrame> =
            functions.rev().map(|(index, function)| self.function(frame, function, index)).collect();
        if all.is_empty() {
            all.push(DisplayFrame {
                name: names::unnamed(frame).into(),
                class: category::of(frame, false),
                module: module(frame),
                file: Arc::default(),
                line: 0,
            });
        }
        let all: Box<[u32]> = all.into_iter().map(|shown| self.tree.frame(shown)).collect();
        path.extend_from_slice(&all);
        self.shown.insert(known, all);
    }

    /// The function of a frame with that number, counted from the innermost.
    fn function(&self, frame: &Frame, function: &Function, index: usize) -> DisplayFrame {
        if frame.kind == FrameKind::Note {
            return DisplayFrame::note(&function.name, Class::Note);
        }
        let last = frame.functions.len().saturating_sub(1);
        let inlined = self.options.inline && index < last;
        let name = names::symbol(frame, function, self.options.names);
        DisplayFrame {
            name: name.unwrap_or_else(|| names::unnamed(frame)).into(),
            class: category::of(frame, inlined),
            module: module(frame),
            file: function.file.as_deref().map(|file| names::printable(file).into()).unwrap_or_default(),
            line: function.line.filter(|_| self.options.lines).unwrap_or(0),
        }
    }
}

fn module(frame: &Frame) -> Arc<str> {
    if let FrameKind::Interpreted(language) = frame.kind {
        return language.module().into();
    }
    frame.module.as_ref().map(|module| names::printable(&module.path).into()).unwrap_or_default()
}
