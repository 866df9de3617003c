//! Reads raw recordings in files, swipr's and swift-profile-recorder's. Frames without a name get
//! one from the files that fit by their build ids. Not here: the reading and the naming
//! (`crates/offline/`); raw recordings as they come from an agent (`raw.rs`).

use crate::event::{Event, OwnedSample};
use crate::shape::Shape;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use swipr_formats::model::{FrameKind, Module, Stack};
use swipr_offline::{LlvmSymbolizer, Named, SearchPath, symbolize, symbolize_by};
use swipr_symbols::symbolizer::Budget;

/// What finds names.
#[derive(Debug, Default)]
pub enum By {
    /// This command's own reader of debug information.
    #[default]
    Us,
    /// An installed program.
    Program(LlvmSymbolizer),
    /// Nothing: frames stay without names.
    Nobody,
}

/// Where names are looked for, and what was not found.
#[derive(Debug, Default)]
pub struct Symbols {
    /// Directories that are searched before the paths that modules had.
    pub directories: Vec<PathBuf>,
    /// What finds the names.
    pub by: By,
    /// Paths of modules for which there is no file.
    pub missing: Vec<String>,
    /// Paths of modules some of whose functions are in none of their files.
    pub unknown: Vec<String>,
}

pub(super) fn read(
    text: &str,
    symbols: &mut Symbols,
    shape: &Arc<Shape>,
    to: &mut dyn FnMut(Event) -> Result<(), String>,
) -> Result<(), String> {
    let mut recording = swipr_offline::read(text).map_err(|error| error.to_string())?;
    if !symbols.directories.is_empty() || recording.stacks.iter().any(|stack| has_unnamed(stack)) {
        let search = SearchPath::new(symbols.directories.iter().cloned());
        let named = match &mut symbols.by {
            By::Us => symbolize(&mut recording, &search, Budget::OF_ITS_OWN),
            By::Program(program) => symbolize_by(&mut recording, &search, program),
            By::Nobody => Named::default(),
        };
        // What the kernel maps has no file.
        let files = |modules: Vec<Arc<Module>>| {
            // A file may be mapped in several pieces.
            let paths: BTreeSet<String> = modules.into_iter().map(|module| module.path.clone()).collect();
            paths.into_iter().filter(|path| !path.starts_with('[')).collect()
        };
        (symbols.missing, symbols.unknown) = (files(named.missing), files(named.unknown));
    }
    let threads: Vec<_> = recording.threads.iter().map(|thread| shape.thread((**thread).clone())).collect();
    let stacks: Vec<_> =
        recording.stacks.iter().map(|stack| shape.stack(stack.frames.clone(), None)).collect();
    to(Event::Header(recording.header.clone()))?;
    for taken in &recording.samples {
        let (Some(thread), Some(stack)) = (threads.get(taken.thread), stacks.get(taken.stack)) else {
            continue;
        };
        to(Event::Sample(OwnedSample {
            time_ns: taken.time_ns,
            ticks: 1,
            thread: Arc::clone(thread),
            state: taken.state,
            weight_ns: taken.weight_ns,
            stack: Arc::clone(stack),
        }))?;
    }
    to(Event::End(recording.summary))
}

fn has_unnamed(stack: &Stack) -> bool {
    stack.frames.iter().any(|frame| frame.kind == FrameKind::Native && frame.functions.is_empty())
}
