//! Stacks as paths of one tree: what stacks have in common is kept once, so that memory grows with
//! distinct callers and callees and not with stacks. Not here: what a frame is, and sums.

use std::hash::Hash;

use rustc_hash::FxHashMap;

/// The node that every stack begins at; it has no frame.
pub(crate) const ROOT: u32 = 0;

/// More nodes are not made but for one each that says so: a program whose stacks never repeat fills
/// no memory. It is 40 MB or so.
const MAX_NODES: usize = 1_000_000;

#[derive(Clone, Copy)]
struct Node {
    parent: u32,
    frame: u32,
}

/// Frames of type `F` and paths of them.
pub(crate) struct Tree<F> {
    ids: FxHashMap<F, u32>,
    frames: Vec<F>,
    children: FxHashMap<(u32, u32), u32>,
    nodes: Vec<Node>,
    most_nodes: usize,
}

impl<F: Hash + Eq + Clone> Tree<F> {
    pub(crate) fn new() -> Self {
        Self::with_at_most(MAX_NODES)
    }

    /// One of at most so many nodes.
    pub(crate) fn with_at_most(most_nodes: usize) -> Self {
        let (ids, frames, children) = <_>::default();
        Tree { ids, frames, children, nodes: vec![Node { parent: ROOT, frame: 0 }], most_nodes }
    }

    /// The number of a frame, from 0 in order of appearance.
    pub(crate) fn frame(&mut self, frame: F) -> u32 {
        if let Some(&id) = self.ids.get(&frame) {
            return id;
        }
        let id = number(self.frames.len());
        self.frames.push(frame.clone());
        self.ids.insert(frame, id);
        id
    }

    /// The node behind `parent` with that frame. Nodes are numbered in order of appearance: a
    /// parent's number is lower than its children's.
    pub(crate) fn child(&mut self, parent: u32, frame: u32) -> u32 {
        let next = number(self.nodes.len());
        let id = *self.children.entry((parent, frame)).or_insert(next);
        if id == next {
            self.nodes.push(Node { parent, frame });
        }
        id
    }

    /// The node of a path, outermost frame first. Where there are too many nodes already the path
    /// ends in `left_out`.
    pub(crate) fn path(&mut self, path: impl Iterator<Item = u32>, left_out: impl FnOnce() -> F) -> u32 {
        let mut node = ROOT;
        for frame in path {
            if self.nodes.len() >= self.most_nodes && !self.children.contains_key(&(node, frame)) {
                let frame = self.frame(left_out());
                return self.child(node, frame);
            }
            node = self.child(node, frame);
        }
        node
    }

    /// All frames in order of their numbers.
    pub(crate) fn frames(&self) -> &[F] {
        &self.frames
    }

    /// How many nodes there are, the root among them.
    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Parent and frame of a node that is not the root.
    pub(crate) fn node(&self, node: u32) -> Option<(u32, u32)> {
        let node = self.nodes.get(node as usize).filter(|_| node != ROOT)?;
        Some((node.parent, node.frame))
    }

    /// The frames from a node to the root: leaf first.
    pub(crate) fn stack(&self, node: u32) -> impl Iterator<Item = &F> {
        let mut at = node;
        std::iter::from_fn(move || {
            let (parent, frame) = self.node(at)?;
            at = parent;
            self.frames.get(frame as usize)
        })
    }
}

fn number(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn insert(tree: &mut Tree<&'static str>, path: &[&'static str]) -> u32 {
        let frames: Vec<u32> = path.iter().map(|frame| tree.frame(frame)).collect();
        tree.path(frames.into_iter(), || "…")
    }

    #[test]
    fn equal_paths_are_one_node_and_come_back_leaf_first() {
        let mut tree = Tree::new();
        let ab = insert(&mut tree, &["a", "b"]);
        let a = insert(&mut tree, &["a"]);
        assert_eq!(insert(&mut tree, &["a", "b"]), ab);
        assert_eq!(tree.stack(ab).collect::<Vec<_>>(), [&"b", &"a"]);
        assert!(a < ab && tree.len() == 3);
        assert_eq!(insert(&mut tree, &[]), ROOT);
    }

    #[test]
    fn a_full_tree_says_what_it_leaves_out_and_stays_bounded() {
        let mut tree = Tree::with_at_most(3);
        let ab = insert(&mut tree, &["a", "b"]);
        let ac = insert(&mut tree, &["a", "c", "d", "e"]);
        assert_eq!(tree.stack(ac).collect::<Vec<_>>(), [&"…", &"a"]);
        assert_eq!(insert(&mut tree, &["a", "x"]), ac);
        assert_eq!(insert(&mut tree, &["a", "b"]), ab);
        assert_eq!(tree.len(), 4);
    }
}
