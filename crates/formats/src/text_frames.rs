//! A stack as the lines that text formats show: inlined functions as entries of
//! their own, over-deep stacks cut in the middle. Not here: how an entry is written.

use crate::Options;
use crate::model::{Frame, Function, Stack};

/// One line of a stack.
#[derive(Clone, Debug)]
pub(crate) enum TextFrame<'a> {
    /// A frame, or a function inlined into it.
    Frame {
        frame: &'a Frame,
        /// `None` when no name is known.
        function: Option<&'a Function>,
        inlined: bool,
    },
    /// Frames were left out here.
    Elided,
}

/// The frames to show, leaf first, and whether some are left out between the two parts.
pub(crate) fn visible<'a>(stack: &'a Stack, options: &Options) -> (&'a [Frame], bool, &'a [Frame]) {
    let frames = stack.frames.as_slice();
    let Some(max_depth) = options.max_depth.map(|depth| depth.max(2)) else {
        return (frames, false, &[]);
    };
    if frames.len() <= max_depth {
        return (frames, false, &[]);
    }
    let outer_count = max_depth / 2;
    let (rest, outer) = frames.split_at(frames.len() - outer_count);
    let (inner, _) = rest.split_at(max_depth - outer_count);
    (inner, true, outer)
}

/// The functions of a frame that are to be shown, innermost first.
pub(crate) fn shown_functions<'a>(frame: &'a Frame, options: &Options) -> &'a [Function] {
    match frame.functions.split_last() {
        Some((outermost, [_, ..])) if !options.inline => std::slice::from_ref(outermost),
        _ => &frame.functions,
    }
}

/// The remark for left-out frames. Not how many: a recursion would have another stack each time.
pub const ELIDED: &str = "[frames elided]";

/// The entries of a stack, leaf first.
pub(crate) fn entries<'a>(stack: &'a Stack, options: &'a Options) -> impl Iterator<Item = TextFrame<'a>> {
    let (inner, is_cut, outer) = visible(stack, options);
    inner
        .iter()
        .flat_map(|frame| of_frame(frame, options))
        .chain(is_cut.then_some(TextFrame::Elided))
        .chain(outer.iter().flat_map(|frame| of_frame(frame, options)))
}

fn of_frame<'a>(frame: &'a Frame, options: &Options) -> impl Iterator<Item = TextFrame<'a>> {
    let functions = shown_functions(frame, options);
    let last = functions.len().saturating_sub(1);
    let unnamed = functions.is_empty().then_some(TextFrame::Frame { frame, function: None, inlined: false });
    functions
        .iter()
        .enumerate()
        .map(move |(index, function)| TextFrame::Frame {
            frame,
            function: Some(function),
            inlined: index < last,
        })
        .chain(unnamed)
}
