//! One stack out of native frames and a chain of interpreted ones.
//!
//! Each native call of the evaluator runs a segment of the chain, which takes its place. Other
//! native frames stay where they are: between the function that called them and the one that they
//! called. The runtime's own machinery between two segments is left out.

use std::ops::Range;

/// Where the code of a runtime is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuntimeCode {
    /// The function that runs its frames.
    pub evaluator: Range<u64>,
    /// The part of that function which is elsewhere; empty: there is none. Of Java: all code that
    /// is made while the program runs.
    pub cold_part: Range<u64>,
    /// A function that the evaluator calls, and which represents nothing else; and the part
    /// of that function which is elsewhere.
    pub inner: [Range<u64>; 2],
    /// All code of the object that the evaluator is in.
    pub object: Range<u64>,
    /// The language that it runs.
    pub language: RuntimeLanguage,
    /// The function from which the evaluator is called for the outermost frame; empty: that frame
    /// always has a call.
    pub root: Range<u64>,
    /// A function of the object that says more than that there is machinery: it is never left out.
    pub shown: Range<u64>,
    /// Functions that free values, and run functions of the program for that. A call of the
    /// evaluator may have no frame any more while it calls them.
    pub freeing: [Range<u64>; 3],
    /// A function that calls functions of the program: it makes their frames before it calls the
    /// evaluator; empty: there is none.
    pub calling: Range<u64>,
}

impl RuntimeCode {
    /// Whether the code at `address` runs its frames.
    pub fn runs(&self, address: u64) -> bool {
        self.evaluator.contains(&address) || self.cold_part.contains(&address)
    }

    /// Code without which a stack has none of its frames. What PHP and Python compile runs without
    /// a call of the evaluator, and of what Ruby compiles no unwind information leads to it.
    pub fn needed(&self) -> [&Range<u64>; 2] {
        match self.language {
            RuntimeLanguage::Python | RuntimeLanguage::Php | RuntimeLanguage::Ruby => {
                [&self.object, &self.cold_part]
            }
            _ => [&self.evaluator, &self.cold_part],
        }
    }

    fn is_inner(&self, address: u64) -> bool {
        self.inner.iter().any(|part| part.contains(&address))
    }
}

/// What a runtime runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RuntimeLanguage {
    /// Python: a native call has a segment, but for moments at its beginning and end.
    #[default]
    Python,
    /// Perl: a frame may be there before its native call, and between two of them.
    Perl,
    /// PHP: the same, while a function is entered or left.
    Php,
    /// Ruby: the same.
    Ruby,
    /// JavaScript: each function has a native frame of its own, so that there is nothing to merge.
    JavaScript,
    /// Java: the same.
    Java,
}

/// An element of the one stack, by its number in the native frames or in the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A native frame.
    Native(usize),
    /// A frame of the chain.
    Interpreted(usize),
}

/// The native frames and the chain, both leaf first.
#[derive(Clone, Copy, Debug)]
pub struct Parts<'a> {
    /// The addresses of the native frames: of the instruction, or of the call.
    pub native: &'a [u64],
    /// The native stack reaches the thread's first function.
    pub is_complete: bool,
    /// Which frames of the chain were entered from native code.
    pub entries: &'a [bool],
    /// The chain was cut before its root.
    pub is_cut: bool,
    /// Native frames were left out before the one with this number.
    pub gap: Option<usize>,
}

/// The one stack.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Merged {
    /// Its frames, leaf first.
    pub places: Vec<Place>,
    /// Nothing says which native call ran which segment: all of the chain is in the place of the
    /// innermost one.
    pub is_uncertain: bool,
}

/// Merges the two.
pub fn merge(parts: Parts<'_>, code: &RuntimeCode) -> Merged {
    match parts.gap.and_then(|gap| parts.native.split_at_checked(gap)) {
        Some((inside, outside)) => merge_around(inside, outside, parts, code),
        None => merge_whole(parts, code),
    }
}

/// Merges where no native frame was left out.
fn merge_whole(parts: Parts<'_>, code: &RuntimeCode) -> Merged {
    let numbered = parts.native.iter().enumerate();
    let mut calls: Vec<usize> =
        numbered.filter(|(_, address)| code.runs(**address)).map(|(at, _)| at).collect();
    let is_whole = parts.is_complete && !parts.is_cut;
    let mut segments = called_segments(parts, is_whole, code);
    let may_wait = code.language != RuntimeLanguage::Python;
    let has_empty = calls.len() == segments.len() + 1 && !parts.is_cut;
    let is_single = segments.first().is_some_and(|innermost| innermost.len() == 1);
    // One frame may have no call yet, and one call no frame any more.
    let has_both = calls.len() == segments.len() && is_single && calls_inside(parts.native, &calls, code);
    let is_unknown = (has_empty || has_both) && frees_between(parts.native, &calls, code);
    // The innermost evaluator was just entered, or is leaving: its frame is not there yet, or not
    // any more, while the frame's variables are freed.
    let dropped = (has_empty && !is_unknown).then(|| calls.remove(0));
    if may_wait && is_single && is_whole && segments.len() == calls.len() + 1 {
        segments.remove(0);
    }
    let all = calls.first().copied().unwrap_or(0)..calls.last().map_or(0, |last| last + 1);
    let mut hidden = all;
    // A fiber of Ruby's that has run only functions of C so far.
    let is_of_c = code.language == RuntimeLanguage::Ruby && calls.is_empty();
    let is_uncertain = is_unknown || calls.len() != segments.len() && is_whole && !is_of_c;
    if is_uncertain {
        calls.truncate(1);
        segments = std::iter::once(0..parts.entries.len()).collect();
    } else if calls.len() > segments.len() {
        // The chain was cut: the calls further out stay as they are.
        calls.truncate(segments.len());
        hidden.end = calls.last().map_or(0, |last| last + 1);
    }
    let is_shown = |at: &u64| !code.object.contains(at) || code.shown.contains(at);
    let is_part = |at: usize| {
        let of_call = parts.native.get(at + 1).is_some_and(|caller| code.runs(*caller));
        of_call && parts.native.get(at).is_some_and(|address| code.is_inner(*address))
    };
    let mut places = Vec::with_capacity(parts.native.len() + parts.entries.len());
    let mut left = segments.into_iter();
    for (at, address) in parts.native.iter().enumerate() {
        if calls.contains(&at) {
            places.extend(left.next().into_iter().flatten().map(Place::Interpreted));
        } else if dropped != Some(at) && !is_part(at) && (is_shown(address) || !hidden.contains(&at)) {
            places.push(Place::Native(at));
        }
    }
    // The native walk did not get so far.
    places.extend(left.flatten().map(Place::Interpreted));
    Merged { places, is_uncertain }
}

/// Whether a function of the program is called inside the innermost call of the evaluator.
fn calls_inside(native: &[u64], calls: &[usize], code: &RuntimeCode) -> bool {
    let inside = calls.first().and_then(|first| native.get(..*first));
    inside.is_some_and(|inside| inside.iter().any(|at| code.calling.contains(at)))
}

/// Whether values are freed between two calls of the evaluator: it may be the outer one that has no
/// frame.
fn frees_between(native: &[u64], calls: &[usize], code: &RuntimeCode) -> bool {
    let between = calls.first().zip(calls.last()).and_then(|(first, last)| native.get(*first..*last));
    let frees = |at: &u64| code.freeing.iter().any(|part| part.contains(at));
    between.is_some_and(|between| between.iter().any(frees))
}

/// The segments that have a call each, but for moments.
fn called_segments(parts: Parts<'_>, is_whole: bool, code: &RuntimeCode) -> Vec<Range<usize>> {
    let mut segments = segments(parts.entries);
    // The program is only being read, or a host calls its functions.
    let has_root = code.root.is_empty() || parts.native.iter().any(|at| code.root.contains(at));
    // A thread or a fiber that begins with a function of C.
    let begins_in_c = code.language == RuntimeLanguage::Ruby && parts.entries.last() == Some(&false);
    if is_whole && !has_root || begins_in_c && segments.len() > 1 {
        // The outermost frame has no call of its own.
        let last = segments.pop().unwrap_or_default();
        if let Some(outermost) = segments.last_mut() {
            outermost.end = last.end;
        }
    }
    segments
}

/// Merges where native frames were left out: those inside take the innermost segments, those
/// outside the outermost ones, and the segments between are in the gap.
fn merge_around(inside: &[u64], outside: &[u64], parts: Parts<'_>, code: &RuntimeCode) -> Merged {
    let calls = |native: &[u64]| native.iter().filter(|address| code.runs(**address)).count();
    let ends: Vec<usize> = segments(parts.entries).into_iter().map(|segment| segment.end).collect();
    let reaches_root = parts.is_complete && !parts.is_cut;
    let outer = if reaches_root { calls(outside).min(ends.len()) } else { 0 };
    let inner = calls(inside).min(ends.len() - outer);
    let end_of = |count: usize| count.checked_sub(1).and_then(|at| ends.get(at)).copied().unwrap_or(0);
    let (first, last) = (end_of(inner), end_of(ends.len() - outer));
    let part = |native, entries: Range<usize>| {
        let entries = parts.entries.get(entries).unwrap_or_default();
        merge_whole(Parts { native, is_complete: false, entries, is_cut: true, gap: None }, code).places
    };
    let mut places = part(inside, 0..first);
    places.extend((first..last).map(Place::Interpreted));
    places.extend(part(outside, last..parts.entries.len()).into_iter().map(|place| match place {
        Place::Native(at) => Place::Native(inside.len() + at),
        Place::Interpreted(at) => Place::Interpreted(last + at),
    }));
    Merged { places, is_uncertain: false }
}

/// The runs of frames that one native call of the evaluator made, leaf first: each ends with its
/// entry.
fn segments(entries: &[bool]) -> Vec<Range<usize>> {
    let mut start = 0;
    let mut segments = vec![];
    for (at, &is_entry) in entries.iter().enumerate() {
        if is_entry || at + 1 == entries.len() {
            segments.push(start..at + 1);
            start = at + 1;
        }
    }
    segments
}

#[cfg(test)]
mod tests;
