//! Recorded stacks in a tree of their frames, for formats that write addresses. Not here: names
//! (`display.rs`).

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use crate::Options;
use crate::model::{Frame, FrameKind, Function, Stack};
use crate::ptr_cache::PtrCache;
use crate::text_frames::{ELIDED, visible};
use crate::tree::Tree;

/// A frame that is compared quickly: by its address, then by all of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Known(pub(crate) Frame);

impl Hash for Known {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.address.hash(state);
        // Remarks and interpreted functions have no address of their own.
        if self.0.address == 0 || matches!(self.0.kind, FrameKind::Interpreted(_)) {
            self.0.functions.first().map(|function| &function.name).hash(state);
        }
    }
}

/// A remark as a frame.
pub(crate) fn note(text: &str) -> Frame {
    let function = Function { name: text.into(), mangled: None, offset: 0, file: None, line: None };
    Frame { address: 0, kind: FrameKind::Note, module: None, functions: [function].into() }
}

/// The frame that replaces those that a full tree has no room for.
pub(crate) const LEFT_OUT: &str = "[left out: too many different stacks]";

/// See the module's text.
pub(crate) struct RawTree<const RECENT: usize = 16_384> {
    pub(crate) tree: Tree<Known>,
    recent: PtrCache<Stack, u32, RECENT>,
}

impl<const RECENT: usize> RawTree<RECENT> {
    pub(crate) fn new() -> Self {
        RawTree { tree: Tree::new(), recent: PtrCache::default() }
    }

    /// One of at most so many nodes.
    pub(crate) fn with_at_most(nodes: usize) -> Self {
        RawTree { tree: Tree::with_at_most(nodes), recent: PtrCache::default() }
    }

    /// The node of a stack, over-deep ones cut in the middle.
    pub(crate) fn node(&mut self, stack: &Arc<Stack>, options: &Options) -> u32 {
        let tree = &mut self.tree;
        *self.recent.get_or_make(stack, || {
            let (inner, is_cut, outer) = visible(stack, options);
            let cut = is_cut.then(|| note(ELIDED));
            let leaf_first = inner.iter().cloned().chain(cut).chain(outer.iter().cloned());
            let mut frames: Vec<u32> = leaf_first.map(|frame| tree.frame(Known(frame))).collect();
            frames.reverse();
            tree.path(frames.into_iter(), || Known(note(LEFT_OUT)))
        })
    }

    /// The node behind `node` with a remark.
    pub(crate) fn noted(&mut self, node: u32, text: &str) -> u32 {
        let frame = self.tree.frame(Known(note(text)));
        self.tree.child(node, frame)
    }

    /// A node's stack.
    pub(crate) fn stack(&self, node: u32) -> Stack {
        Stack { frames: self.tree.stack(node).map(|known| known.0.clone()).collect() }
    }
}
