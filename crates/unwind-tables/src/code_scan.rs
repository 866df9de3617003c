//! Unwind rows of code that nothing describes, from its instructions: hand-written assembly of
//! OpenBLAS, x264, x265, and the `main` that rustc writes with `panic=abort`.
//!
//! Idea: however a function has moved the stack pointer, its end says how it is moved back. So the
//! code is followed from one instruction over all jumps to the function's returns, and read
//! backwards from there: at `ret` CFA = sp + 8, before a `pop` it is 8 more, before `mov %rbx,%rsp`
//! it is said by rbx. No beginning of a function has to be known, and no symbol.
//!
//! Assumption: calls return. Behind a call that does not, another function may begin, whose CFA is
//! at another distance. Mostly that shows: by padding, or by a distance at which no compiler calls.
//! (At a call sp is a multiple of 16, as the CFA is; where a function begins it is not.) Where two
//! ways to the end disagree, nothing is said of all the code.

mod state;

pub use state::{Base, CodeState, FramePointer};

use crate::order::sorted_by;
use crate::table::{OwnedTable, TableBuilder};
use std::ops::Range;
use swipr_unwind::register_rules::RegisterRule;
use swipr_unwind::register_table::{DESCRIBED, RegisterRow};
use swipr_unwind::rule::Rule;
use swipr_unwind::x86_code::{Effect, Instruction, decode, is_signal_return};

/// Instructions that are followed: OpenBLAS's `dgemm_kernel_HASWELL` has 5,500.
const MAX_INSTRUCTIONS: usize = 20_000;
/// The same, in a search for functions: of some milliseconds.
const MAX_IN_ALL: usize = 60_000;
/// Functions begin at multiples of this.
const ALIGNMENT: u64 = 16;
/// The registers that calls keep, but for sp and fp, by DWARF number.
const KEPT: [u8; 5] = [3, 12, 13, 14, 15];
/// Code is followed up to so far from where a scan starts.
const FARTHEST: u64 = 1 << 20;
/// Passes over them: each follows one more jump backwards.
const MAX_PASSES: usize = 32;
/// The code that is scanned.
pub trait Code {
    /// The bytes from an address on, as far as they are known: of an instruction and of what is
    /// behind it.
    fn bytes(&mut self, address: u64) -> &[u8];
    /// The rule of described code; [`Rule::NONE`]: nothing describes it.
    fn rule(&mut self, address: u64) -> Rule;
}

/// The code that can be reached from `start`, an instruction, in pieces of one state each, as far
/// as that is known. Sorted.
pub fn scan(start: u64, code: &mut dyn Code) -> Vec<(Range<u64>, CodeState)> {
    let scan = Scan::new(start, code, &mut Seen::around(start));
    if scan.is_inconsistent() { vec![] } else { scan.rows() }
}

/// The unwind table of such pieces; `None`: there are none.
pub fn table(pieces: &[(Range<u64>, CodeState)]) -> Option<OwnedTable> {
    let start = pieces.first()?.0.start;
    let mut builder = TableBuilder::new(start, pieces.len());
    let (mut extended, mut expressions, mut end) = (vec![], vec![], start);
    for (range, state) in pieces {
        if end != range.start {
            builder.push(end, Rule::NONE);
        }
        let rule = state.rule(&mut expressions).or_else(|full| {
            extended.push(full);
            Rule::extended(extended.len() as u32 - 1).ok_or(())
        });
        builder.push(range.start, rule.unwrap_or(Rule::NONE));
        end = range.end;
    }
    Some(builder.finish(end, extended, expressions, 0).with_saved(saved(end - start)))
}

/// Assembly changes no register behind the back of its own callers, but for those that the ABI has
/// it save, and where it does that is not known.
fn saved(bytes: u64) -> Vec<RegisterRow> {
    let row = |register, start, how| RegisterRow { start, register, how, length: 0, value: 0 };
    let lost = KEPT.into_iter().map(|register| row(register, 0, RegisterRule::Undefined));
    let end = row(DESCRIBED, u32::try_from(bytes).unwrap_or(u32::MAX), RegisterRule::Undefined);
    lost.chain([row(DESCRIBED, 0, RegisterRule::Same), end]).collect()
}

/// The functions of undescribed code that begin at multiples of 16, and return: as [`scan`] of all
/// of them.
pub fn scan_functions(hole: &Range<u64>, code: &mut dyn Code) -> Vec<(Range<u64>, CodeState)> {
    let (mut pieces, mut at, mut left) = (vec![], hole.start.next_multiple_of(ALIGNMENT), MAX_IN_ALL);
    let mut seen = Seen::around(hole.start);
    while at < hole.end && left > 0 {
        let scan = Scan::new(at, code, &mut seen);
        left = left.saturating_sub(scan.known.len());
        let is_function = scan.state(at) == Some(CodeState::AT_ENTRY) && !scan.is_inconsistent();
        let mut end = at + 1;
        if is_function {
            for (range, state) in scan.rows() {
                end = if range.start <= end { end.max(range.end) } else { end };
                pieces.push((range, state));
            }
        }
        at = end.next_multiple_of(ALIGNMENT);
    }
    pieces
}

/// An instruction, and what holds before it.
#[derive(Clone)]
struct Known {
    place: Range<u64>,
    /// Of described code, and of what is no instruction, [`Effect::End`].
    effect: Effect,
    state: Option<CodeState>,
}

/// A bit for each address up to [`FARTHEST`] before and behind one.
struct Seen {
    first: u64,
    bits: Vec<u64>,
}

impl Seen {
    fn around(address: u64) -> Seen {
        Seen { first: address.saturating_sub(FARTHEST), bits: vec![0; (2 * FARTHEST / 64) as usize] }
    }

    /// Turns a bit over. `None`: the address is too far.
    fn flip(&mut self, address: u64) -> Option<bool> {
        let bit = address.wrapping_sub(self.first);
        let word = self.bits.get_mut(usize::try_from(bit / 64).ok()?)?;
        *word ^= 1 << (bit % 64);
        Some(*word >> (bit % 64) & 1 != 0)
    }
}

/// What was followed, sorted.
struct Scan {
    known: Vec<Known>,
}

/// Where a jump from the end of an instruction goes.
fn target(next: u64, distance: i32) -> u64 {
    next.wrapping_add_signed(distance.into())
}

impl Scan {
    fn new(start: u64, code: &mut dyn Code, seen: &mut Seen) -> Scan {
        let mut known = vec![];
        let mut starts = vec![start];
        while let Some(mut at) = starts.pop() {
            while known.len() < MAX_INSTRUCTIONS
                && let Some(is_new) = seen.flip(at)
            {
                if !is_new {
                    seen.flip(at);
                    break;
                }
                let rule = code.rule(at);
                let read = if rule == Rule::NONE { read(at, code) } else { None };
                let (next, effect) = read.unwrap_or((at, Effect::End));
                known.push(Known { place: at..next, effect, state: CodeState::of_rule(rule) });
                at = match effect {
                    Effect::Return | Effect::End => break,
                    Effect::Jump(distance) => target(next, distance),
                    Effect::Branch(distance) => {
                        starts.push(target(next, distance));
                        next
                    }
                    _ => next,
                };
            }
        }
        known.iter().for_each(|known: &Known| _ = seen.flip(known.place.start));
        let mut scan = Scan { known: sorted_by(&known, |known| known.place.start) };
        scan.solve();
        scan
    }

    fn state(&self, at: u64) -> Option<CodeState> {
        let found = self.known.binary_search_by_key(&at, |known| known.place.start).ok()?;
        self.known.get(found)?.state
    }

    fn solve(&mut self) {
        for _ in 0..MAX_PASSES {
            let mut is_done = true;
            for number in (0..self.known.len()).rev() {
                let Some(Known { place, effect, state: None }) = self.known.get(number) else { continue };
                let state = self.before(place.end, *effect);
                if let (Some(known), true) = (self.known.get_mut(number), state.is_some()) {
                    (known.state, is_done) = (state, false);
                }
            }
            if is_done {
                return;
            }
        }
    }

    fn before(&self, next: u64, effect: Effect) -> Option<CodeState> {
        match effect {
            Effect::Return => Some(CodeState::AT_ENTRY),
            Effect::End => None,
            Effect::Jump(distance) => self.state(target(next, distance)),
            Effect::Branch(distance) => self.state(next).or_else(|| self.state(target(next, distance))),
            effect => self.state(next)?.before(effect),
        }
    }

    fn is_inconsistent(&self) -> bool {
        let base = |at| Some(self.state(at)?.base);
        self.known.iter().any(|Known { place, effect, .. }| match effect {
            Effect::Branch(distance) => {
                let (taken, not_taken) = (base(target(place.end, *distance)), base(place.end));
                taken.zip(not_taken).is_some_and(|(taken, not_taken)| taken != not_taken)
            }
            _ => false,
        })
    }

    fn rows(&self) -> Vec<(Range<u64>, CodeState)> {
        let mut rows: Vec<(Range<u64>, CodeState)> = vec![];
        for Known { place, state, .. } in self.known.iter().filter(|known| !known.place.is_empty()) {
            let Some(state) = *state else { continue };
            match rows.last_mut() {
                Some((range, last)) if range.end == place.start && *last == state => range.end = place.end,
                _ => rows.push((place.clone(), state)),
            }
        }
        rows
    }
}

/// Where the instruction at `at` ends, and what it does. What returns from signals is followed no
/// further: walks know it by the same bytes.
fn read(at: u64, code: &mut dyn Code) -> Option<(u64, Effect)> {
    let bytes = Some(code.bytes(at)).filter(|bytes| !is_signal_return(bytes))?;
    let Instruction { length, effect } = decode(bytes)?;
    let is_at_end = bytes.get(length..).is_some_and(begins_with_padding);
    let next = at.wrapping_add(length as u64);
    let Effect::Call(distance) = effect else { return Some((next, effect)) };
    let is_own = distance.is_some_and(|distance| code.rule(target(next, distance)) == Rule::NONE);
    let effect = if distance == Some(0) {
        Effect::Push(None) // it gets the address of the next instruction
    } else if is_at_end {
        Effect::End // it does not return
    } else if is_own {
        Effect::None // assembly calls its own parts with any sp, and keeps what it needs
    } else {
        effect
    };
    Some((next, effect))
}

/// nop of any length, int3.
fn begins_with_padding(bytes: &[u8]) -> bool {
    matches!(
        bytes,
        [0x90 | 0xcc, ..]
            | [0x0f, 0x1f, ..]
            | [0x66, 0x90, ..]
            | [0x66, 0x0f, 0x1f, ..]
            | [0x66, 0x2e | 0x66, ..]
    )
}

#[cfg(test)]
mod tests;
