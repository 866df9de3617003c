//! Which samples a recording's filter lets pass, and how many it does not.

use std::sync::Arc;
use swipr_formats::PtrCache;
use swipr_formats::model::{Stack, State, Summary};
use swipr_server::recording::{Filter, StateFilter};

/// A recording's filter of samples, and the number that it did not let pass.
#[derive(Debug)]
pub struct SampleFilter {
    filter: Filter,
    /// Whether a stack's frames pass.
    stacks: PtrCache<Stack, bool, 4096>,
    filtered: u64,
}

impl SampleFilter {
    /// Nothing has come yet.
    pub fn new(filter: &Filter) -> SampleFilter {
        SampleFilter { filter: filter.clone(), stacks: PtrCache::default(), filtered: 0 }
    }

    /// Whether samples with that state and that stack are wanted; they are counted if not.
    pub fn is_wanted(&mut self, state: State, stack: &Arc<Stack>, ticks: u32) -> bool {
        let doing = match state {
            State::Running => StateFilter::Running,
            State::Runnable => StateFilter::Waiting,
            State::Blocked(_) => StateFilter::Blocked,
        };
        let Filter { states, include, exclude, .. } = &self.filter;
        let has = |regex: &regex_lite::Regex| {
            let mut functions = stack.frames.iter().flat_map(|frame| frame.functions.iter());
            functions.any(|function| regex.is_match(&function.name))
        };
        let has_frames = include.is_none() && exclude.is_none()
            || *self.stacks.get_or_make(stack, || {
                include.as_ref().is_none_or(has) && !exclude.as_ref().is_some_and(has)
            });
        let is_wanted = has_frames && (states.is_empty() || states.contains(&doing));
        self.filtered += if is_wanted { 0 } else { u64::from(ticks) };
        is_wanted
    }

    /// How many samples did not pass.
    pub fn filtered(&self) -> u64 {
        self.filtered
    }

    /// The recording's figures, less the samples that did not pass.
    pub fn without_filtered(&self, summary: Summary) -> Summary {
        let samples = summary.samples.saturating_sub(self.filtered);
        Summary { samples, filtered: self.filtered, ..summary }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use regex_lite::Regex;
    use swipr_formats::model::{Frame, FrameKind, Function};

    fn stack(names: &[&str]) -> Arc<Stack> {
        let frame = |name: &&str| {
            let function =
                Function { name: (*name).into(), mangled: None, offset: 0, file: None, line: None };
            Frame { address: 1, kind: FrameKind::Native, module: None, functions: [function].into() }
        };
        Arc::new(Stack { frames: names.iter().map(frame).collect() })
    }

    #[test]
    fn stacks_and_states_pass_or_are_counted() {
        let regex = |text| Some(Regex::new(text).unwrap());
        let filter = Filter {
            states: vec![StateFilter::Running, StateFilter::Waiting],
            include: regex("^parse"),
            exclude: regex("free$"),
            ..Filter::default()
        };
        let mut passed = SampleFilter::new(&filter);
        for (state, names, expected) in [
            (State::Running, ["read", "parse_all"], true),
            (State::Runnable, ["read", "parse_all"], true),
            (State::Blocked(None), ["read", "parse_all"], false),
            (State::Running, ["read", "main"], false),
            (State::Running, ["free", "parse_all"], false),
        ] {
            assert_eq!(passed.is_wanted(state, &stack(&names), 2), expected, "{names:?}");
        }
        let left = passed.without_filtered(Summary { samples: 10, ..Summary::default() });
        assert_eq!((left.samples, left.filtered), (4, 6));
        let mut all = SampleFilter::new(&Filter::default());
        assert!(all.is_wanted(State::Blocked(None), &stack(&[]), 1));
    }
}
