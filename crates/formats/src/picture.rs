//! Weighted stacks as boxes with places: what a flame graph that is drawn here needs. Not here: how
//! boxes look.

use crate::display::DisplayFrame;
use crate::order::sorted;
use crate::tree::{ROOT, Tree};

/// A box: all stacks that have the same frames up to here.
#[derive(Clone, Debug)]
pub(crate) struct Box {
    /// Number of the frame in the tree; `None`: all of it.
    pub(crate) frame: Option<u32>,
    pub(crate) depth: usize,
    /// What is left of it, in units of weight.
    pub(crate) before: u64,
    pub(crate) weight: u64,
    /// Weight of the same stacks in an earlier recording.
    pub(crate) earlier: u64,
}

/// Frames, and weights where stacks end.
pub(crate) struct Picture {
    pub(crate) tree: Tree<DisplayFrame>,
    own: Vec<[u64; 2]>,
}

/// Whose weight it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Baseline {
    Now = 0,
    Earlier = 1,
}

impl Picture {
    pub(crate) fn new() -> Self {
        Picture { tree: Tree::new(), own: Vec::new() }
    }

    /// Adds a stack, outermost frame first.
    pub(crate) fn add<'f>(
        &mut self,
        frames: impl Iterator<Item = &'f DisplayFrame>,
        weight: u64,
        side: Baseline,
    ) {
        let ids: Vec<u32> = frames.map(|frame| self.tree.frame(frame.clone())).collect();
        let left_out = || DisplayFrame::note(crate::raw_tree::LEFT_OUT, crate::category::Class::Note);
        let node = self.tree.path(ids.into_iter(), left_out);
        self.own.resize(self.own.len().max(self.tree.len()), [0, 0]);
        let place = self.own.get_mut(node as usize).and_then(|own| own.get_mut(side as usize));
        if let Some(own) = place {
            *own = own.saturating_add(weight);
        }
    }

    /// The nodes where stacks end, and what these weigh.
    pub(crate) fn weights(&self, side: Baseline) -> impl Iterator<Item = (u32, u64)> {
        let weights = self.own.iter().map(move |own| own.get(side as usize).copied().unwrap_or(0));
        (0u32..).zip(weights).filter(|&(_, weight)| weight > 0)
    }

    /// The boxes, each before those on top of it, siblings by name. Those below `least` of weight
    /// are left out.
    pub(crate) fn boxes(&self, least: u64) -> Vec<Box> {
        let mut totals = self.own.clone();
        totals.resize(self.tree.len(), [0, 0]);
        for node in (1..totals.len()).rev() {
            let Some((parent, _)) = self.tree.node(node as u32) else { continue };
            let [now, earlier] = totals.get(node).copied().unwrap_or_default();
            if let Some(sum) = totals.get_mut(parent as usize) {
                *sum = [sum[0].saturating_add(now), sum[1].saturating_add(earlier)];
            }
        }
        let mut children: Vec<Vec<u32>> = vec![Vec::new(); totals.len()];
        for node in 1..totals.len() as u32 {
            let weight = totals.get(node as usize).map_or(0, |total| total[0]);
            if let Some((parent, _)) = self.tree.node(node).filter(|_| weight > 0 && weight >= least)
                && let Some(siblings) = children.get_mut(parent as usize)
            {
                siblings.push(node);
            }
        }
        let mut boxes = Vec::new();
        let mut todo = vec![(ROOT, 0usize, 0u64)];
        while let Some((node, depth, before)) = todo.pop() {
            let [weight, earlier] = totals.get(node as usize).copied().unwrap_or_default();
            let frame = self.tree.node(node).map(|(_, frame)| frame);
            boxes.push(Box { frame, depth, before, weight, earlier });
            let kids = children.get_mut(node as usize).map(std::mem::take).unwrap_or_default();
            let name = |kid: u32| self.tree.node(kid).and_then(|(_, f)| self.shown(f)).map(|f| &f.name);
            let mut x = before;
            for kid in sorted(&kids, &|a, b| name(*a).cmp(&name(*b))) {
                todo.push((kid, depth + 1, x));
                x = x.saturating_add(totals.get(kid as usize).map_or(0, |total| total[0]));
            }
        }
        boxes
    }

    /// The frame with that number.
    pub(crate) fn shown(&self, frame: u32) -> Option<&DisplayFrame> {
        self.tree.frames().get(frame as usize)
    }
}
