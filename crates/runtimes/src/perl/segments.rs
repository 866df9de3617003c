//! Which frames a native call of the run loop was made for.
//!
//! Perl calls it for subs and blocks that C code calls, and for an eval below these: an eval needs
//! a loop that it can leave, and those before it cannot be left.

use crate::room::{Chain, Frame};

/// What the walk saw of a frame, besides its function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mark {
    /// Nothing.
    Plain = 0,
    /// Nothing follows when it returns: C code has called it, or it is the last thing of a block.
    CalledSub = 1,
    /// An eval.
    Eval = 2,
    /// An eval after which nothing follows: the one around a sub that C code calls, or the last
    /// thing of a block, or what C code has given to be run.
    LastEval = 3,
    /// A block that C code calls: of a sort, of a pattern, of `defer`.
    Block = 4,
    /// A sub that C code has called, on a stack of its own.
    FirstSub = 5,
    /// An eval that C code has made, on a stack of its own, around a sub or for a text.
    FirstEval = 6,
}

impl Mark {
    /// A segment of which no frame is shown.
    pub(super) fn alone(self) -> Frame {
        Frame { mark: self as u8, ..Frame::default() }
    }

    fn of(frame: Frame) -> Mark {
        use Mark::*;
        let all = [Plain, CalledSub, Eval, LastEval, Block, FirstSub, FirstEval];
        all.into_iter().find(|mark| *mark as u8 == frame.mark).unwrap_or(Plain)
    }
}

/// Says of each frame whether the run loop was called for it.
pub(super) fn mark_entries(chain: &mut Chain) {
    let mut outer = Mark::Plain;
    // Whether the loop that runs now cannot be left by an error.
    let mut is_fixed = false;
    for at in (0..chain.frames().len()).rev() {
        let Some(frame) = chain.get(at) else { return };
        let mark = Mark::of(frame);
        let inner = at.checked_sub(1).and_then(|inner| chain.get(inner)).map(Mark::of);
        let is_entry = match mark {
            Mark::Plain => false,
            Mark::Block | Mark::FirstSub => true,
            // The sub is the last thing in the block.
            Mark::CalledSub => outer != Mark::Block,
            Mark::Eval => is_fixed,
            Mark::LastEval if outer == Mark::Block => true,
            Mark::LastEval | Mark::FirstEval => inner != Some(Mark::CalledSub),
        };
        let is_eval = |mark| matches!(mark, Mark::Eval | Mark::LastEval | Mark::FirstEval);
        if is_entry {
            is_fixed = !is_eval(mark) && !is_eval(outer);
        }
        chain.set(at, Frame { is_entry, ..frame });
        outer = mark;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::room::Chain;

    /// Which of these marks, root first, are entries.
    fn entries(marks: &[Mark]) -> Vec<bool> {
        // SAFETY: zeroed memory is a valid chain.
        let mut chain: Box<Chain> = unsafe { Box::new_zeroed().assume_init() };
        for mark in marks.iter().rev() {
            assert!(chain.push(mark.alone()));
        }
        mark_entries(&mut chain);
        chain.frames().iter().rev().map(|frame| frame.is_entry).collect()
    }

    #[test]
    fn an_eval_has_a_loop_of_its_own_only_where_the_one_around_it_cannot_be_left() {
        use Mark::*;
        assert_eq!(entries(&[Plain, Eval, Plain, Eval]), [false; 4]);
        // sort -> sub -> eval -> eval.
        let sorted = [Plain, Block, Plain, Eval, Eval];
        assert_eq!(entries(&sorted), [false, true, false, true, false]);
        // A callback of C code, without an eval around it and with one.
        assert_eq!(entries(&[Plain, CalledSub, Eval]), [false, true, true]);
        assert_eq!(entries(&[Plain, LastEval, CalledSub, Eval]), [false, false, true, false]);
    }

    #[test]
    fn what_comes_last_in_a_block_was_not_called_by_c_code() {
        use Mark::*;
        assert_eq!(entries(&[Plain, Block, CalledSub, Plain]), [false, true, false, false]);
        assert_eq!(entries(&[Plain, Block, LastEval]), [false, true, true]);
        assert_eq!(entries(&[Plain, Block, Eval]), [false, true, true]);
        // What has a stack of its own was: an overloaded operator, DESTROY.
        assert_eq!(entries(&[Plain, Block, FirstSub, Plain]), [false, true, true, false]);
        assert_eq!(entries(&[Block, FirstEval, CalledSub, Eval]), [true, false, true, false]);
    }
}
