//! Shown stacks as columns of numbers in JSON, for flame graphs that are drawn in a browser. What
//! was written once is not written again, so that a live flame graph gets only what is new. Not
//! here: pages, and whose weights these are.
//!
//! `names` are texts; `frames` five numbers each: name, kind ([`crate::category::Class`]), module,
//! file (numbers of names), line; `nodes` two each: parent (0 is the root, which is not written)
//! and frame; `threads` a number and a name each; `states` what a thread does (0 running, 1 waiting
//! for a CPU, 2 blocked) and its words.

use std::fmt::Write;
use std::sync::Arc;

use crate::display::DisplayFrame;
use crate::intern::Interner;
use crate::json::{Members, string};
use crate::model::{Header, Mode, State, Thread};
use crate::names;
use crate::state;
use crate::tree::Tree;
use crate::{Options, clock};

/// What has been written.
pub(crate) struct Columns {
    names: Interner<Arc<str>>,
    frames: usize,
    nodes: usize,
    threads: usize,
    states: Interner<State>,
    new_states: Vec<State>,
}

impl Columns {
    pub(crate) fn new() -> Self {
        let (names, states) = (Interner::new(), Interner::new());
        Columns { names, frames: 0, nodes: 1, threads: 0, states, new_states: Vec::new() }
    }

    /// The number of a state.
    pub(crate) fn state(&mut self, state: State) -> usize {
        let interned = self.states.intern(state);
        if interned.new {
            self.new_states.push(state);
        }
        interned.id
    }

    /// Adds what is new in the tree and the threads. States are those numbered so far.
    pub(crate) fn add(
        &mut self,
        object: Members,
        tree: &Tree<DisplayFrame>,
        threads: &[Arc<Thread>],
    ) -> Members {
        let mut names = Members::array();
        let mut frames = Numbers::new();
        let new_frames = tree.frames().get(self.frames..).unwrap_or_default();
        for frame in new_frames {
            let [name, module, file] = [&frame.name, &frame.module, &frame.file].map(|text| {
                let interned = self.names.intern(Arc::clone(text));
                if interned.new {
                    names.push(string(text));
                }
                interned.id as u64
            });
            frames.extend([name, frame.class as u64, module, file, u64::from(frame.line)]);
        }
        let mut nodes = Numbers::new();
        for node in self.nodes..tree.len() {
            if let Some((parent, frame)) = tree.node(node as u32) {
                nodes.extend([parent, frame].map(u64::from));
            }
        }
        let new_threads = threads.get(self.threads..).unwrap_or_default();
        let threads_json = new_threads.iter().fold(Members::array(), |array, thread| {
            array.element(thread.tid).element(string(&names::printable(&thread.name)))
        });
        let states = self.new_states.drain(..).fold(Members::array(), |array, state| {
            let group = match state {
                State::Running => 0,
                State::Runnable => 1,
                State::Blocked(_) => 2,
            };
            array.element(group).element(string(&state::phrase(state)))
        });
        (self.frames, self.nodes, self.threads) = (tree.frames().len(), tree.len(), threads.len());
        object
            .field("names", names.end())
            .field("frames", frames.end())
            .field("nodes", nodes.end())
            .field("threads", threads_json.end())
            .field("states", states.end())
    }
}

/// What the page shows above the picture.
pub(crate) fn about(header: &Header, options: &Options) -> Members {
    let mode = match header.mode {
        Mode::Wall => "wall",
        Mode::Cpu => "cpu",
    };
    Members::object()
        .maybe("title", options.title.as_deref().map(|title| string(&names::printable(title))))
        .field("process", string(&names::printable(&header.process_name)))
        .field("pid", header.pid)
        .field("mode", string(mode))
        .maybe("whole", header.measure.as_ref().map(|measure| string(&names::measure(measure))))
        .field("interval_ns", header.interval_ns)
        .maybe("when", (header.start_ns > 0).then(|| string(&clock::utc(header.start_ns))))
}

/// An array of numbers.
pub(crate) struct Numbers(String);

impl Numbers {
    pub(crate) fn new() -> Self {
        Numbers(String::from("["))
    }

    pub(crate) fn push(&mut self, number: u64) {
        let comma = if self.0.len() > 1 { "," } else { "" };
        // Writing to a String cannot fail.
        let _ = write!(self.0, "{comma}{number}");
    }

    pub(crate) fn extend(&mut self, numbers: impl IntoIterator<Item = u64>) {
        numbers.into_iter().for_each(|number| self.push(number));
    }

    pub(crate) fn end(mut self) -> String {
        self.0.push(']');
        self.0
    }
}
