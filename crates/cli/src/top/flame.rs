//! A flame graph in characters: the stacks since the beginning as a tree, a line for each depth,
//! roots on top.

use super::aggregate::{Aggregate, StateFilter, names};
use std::collections::BTreeMap;
use swipr_formats::model::FrameKind;

/// Deeper frames are left out.
const DEEPEST: usize = 400;

/// A function in its callers, with its time.
#[derive(Debug, Default)]
pub(super) struct Node {
    ns: u64,
    children: BTreeMap<String, Node>,
}

/// A part of a line: from which column, how wide, what is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Bar {
    pub(super) column: u16,
    pub(super) width: u16,
    pub(super) name: String,
}

/// The tree of all stacks by the time that was spent so.
pub(super) fn tree(aggregate: &Aggregate, doing: StateFilter) -> Node {
    let mut root = Node::default();
    for (stack, time) in aggregate.stacks() {
        let ns = time.ns(doing);
        if ns == 0 {
            continue;
        }
        root.ns += ns;
        let mut node = &mut root;
        let frames = stack.frames.iter().rev().filter(|frame| frame.kind != FrameKind::Note);
        let functions = frames.flat_map(|frame| names(frame, false).into_iter().rev());
        for (name, _) in functions.take(DEEPEST) {
            node = node.children.entry(name).or_default();
            node.ns += ns;
        }
    }
    root
}

/// The lines of the graph, `width` columns wide. What is narrower than a column is left out.
pub(super) fn lines(root: &Node, width: u16) -> Vec<Vec<Bar>> {
    let mut lines = Vec::new();
    place(root, 0.0, f64::from(width), &mut lines, 0);
    lines
}

fn place(node: &Node, from: f64, width: f64, lines: &mut Vec<Vec<Bar>>, depth: usize) {
    let mut from = from;
    for (name, child) in &node.children {
        let share = width * child.ns as f64 / node.ns.max(1) as f64;
        let (column, end) = (from.round() as u16, (from + share).round() as u16);
        if end > column {
            if lines.len() <= depth {
                lines.push(Vec::new());
            }
            if let Some(line) = lines.get_mut(depth) {
                line.push(Bar { column, width: end - column, name: name.clone() });
            }
            place(child, from, share, lines, depth + 1);
        }
        from += share;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(ns: u64, children: Vec<(&str, Node)>) -> Node {
        Node { ns, children: children.into_iter().map(|(name, node)| (name.to_owned(), node)).collect() }
    }

    #[test]
    fn bars_are_as_wide_as_their_time_and_stand_below_their_callers() {
        let main = node(100, vec![("a", node(60, vec![])), ("b", node(39, vec![])), ("c", node(1, vec![]))]);
        let lines = lines(&node(100, vec![("main", main)]), 10);
        let bar = |column, width, name: &str| Bar { column, width, name: name.to_owned() };
        assert_eq!(lines, [vec![bar(0, 10, "main")], vec![bar(0, 6, "a"), bar(6, 4, "b")]]);
    }
}
