//! A thread that runs in several interpreters (PEP 734) has a state in each. All that have frames
//! are in use: code of the outer interpreter called the inner one's. Where on the native stack the
//! evaluator keeps what belongs to a state says in which order. The state of a thread that has just
//! started is found in the same way.

use super::{Entry, MAX_STEPS, SHIM, ThreadKey, Walk};
use crate::room::End;

/// Interpreters that are looked at, and states of each. The newest ones come first. More are looked
/// at where the stack has calls of the evaluator for which there are no frames.
const INTERPRETERS: usize = 64;
pub(super) const STATES: usize = 8;
pub(super) const MORE_STATES: usize = 64;
/// Blocks that are left for frames and functions.
const FOR_FRAMES: usize = 320;
/// States of one thread that are read.
const MOST: usize = 8;

/// States of one thread, innermost first.
#[derive(Debug, Default)]
pub(super) struct States {
    /// Where on the native stack each one's innermost call of the evaluator is, and the state.
    found: [(u64, u64); MOST],
    count: usize,
    /// One of the thread was met, in use or not.
    pub has_one: bool,
}

impl States {
    /// The states.
    pub fn iter(&self) -> impl Iterator<Item = u64> {
        self.found.iter().take(self.count).map(|(_, state)| *state)
    }

    fn add(&mut self, place: u64, state: u64) -> Result<(), End> {
        if self.iter().any(|known| known == state) {
            return Ok(());
        }
        let (mut new, count) = ((place, state), self.count);
        for inner in self.found.iter_mut().take(count) {
            if new.0 < inner.0 {
                core::mem::swap(inner, &mut new);
            }
        }
        *self.found.get_mut(count).ok_or(End::NoState)? = new;
        self.count += 1;
        // Versions before 3.11 do not say where.
        let is_ordered = self.count < 2 || self.found.first().is_some_and(|(place, _)| *place != 0);
        if is_ordered { Ok(()) } else { Err(End::NoState) }
    }
}

impl Walk<'_, '_, '_> {
    /// Whether this state is the thread's, and there is one interpreter.
    pub(super) fn is_only_state(&mut self, state: u64, thread: ThreadKey) -> bool {
        let row = self.layout.row;
        state != 0
            && self.layout.is_of(state, thread, self.memory) == Some(true)
            && self
                .word(self.layout.runtime, row.interpreters)
                .and_then(|newest| self.word(newest, row.interpreter_next))
                .is_ok_and(|next| next == 0)
    }

    /// The states of the thread that are in use, `known` among them if it is. The thread's stack
    /// pointer is `sp`.
    /// At `most` so many states of each interpreter are looked at.
    pub(super) fn states_in_use(
        &mut self,
        known: u64,
        thread: ThreadKey,
        sp: u64,
        most: usize,
    ) -> Result<States, End> {
        let row = self.layout.row;
        let mut states = States::default();
        if known != 0 {
            self.add_if_in_use(known, thread, sp, &mut states)?;
        }
        let mut interpreter = self.word(self.layout.runtime, row.interpreters)?;
        for _ in 0..INTERPRETERS {
            if interpreter == 0 {
                break;
            }
            let mut state = self.word(interpreter, row.interpreter_threads)?;
            for _ in 0..most {
                if state == 0 || self.memory.left() < FOR_FRAMES {
                    break;
                }
                self.add_if_in_use(state, thread, sp, &mut states)?;
                state = self.word(state, row.thread_next)?;
            }
            interpreter = self.word(interpreter, row.interpreter_next)?;
        }
        Ok(states)
    }

    fn add_if_in_use(
        &mut self,
        state: u64,
        thread: ThreadKey,
        sp: u64,
        states: &mut States,
    ) -> Result<(), End> {
        if self.layout.is_of(state, thread, self.memory) != Some(true) {
            return Ok(());
        }
        states.has_one = true;
        // Another thread may be using the state: its evaluator is on that thread's stack then.
        let is_own =
            |place: u64| place == 0 || sp <= place && (thread.pointer < sp || place < thread.pointer);
        match self.place(state)?.filter(|place| is_own(*place)) {
            Some(place) => states.add(place, state),
            None => Ok(()),
        }
    }

    /// Where on the native stack the innermost call of the evaluator for this state is; 0: the
    /// version does not say. `None`: there is none.
    fn place(&mut self, state: u64) -> Result<Option<u64>, End> {
        let row = self.layout.row;
        let structure = self.word(state, row.thread_frame)?;
        if let Some(current) = row.c_frame {
            return Ok((self.word(structure, current)? != 0).then_some(structure));
        }
        let mut frame = structure;
        let Entry::Shim(owner) = row.frame_entry else { return Ok((frame != 0).then_some(0)) };
        for _ in 0..MAX_STEPS {
            if frame == 0 || self.byte(frame, owner)? >= SHIM {
                break;
            }
            frame = self.word(frame, row.frame_previous)?;
        }
        Ok((frame != 0).then_some(frame))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::python::tests::{ROW, address, structure, with_walk};
    use crate::python::{NativeCalls, walk};

    const NATIVE: NativeCalls = NativeCalls { sp: 4096, calls: 0 };

    /// How many states are in use by the thread of this stack, of two interpreters' states whose
    /// evaluators are on it, or somewhere else.
    fn in_use(sp: u64, pointer: u64) -> usize {
        let frame = structure(&[(ROW.frame_code, 4096)]);
        let c_frame = structure(&[(ROW.c_frame.unwrap(), address(&frame))]);
        let words = [(ROW.thread_frame, address(&c_frame)), (ROW.thread_ident, pointer)];
        let (inner, outer) = (structure(&words), structure(&words));
        let first = structure(&[(ROW.interpreter_threads, address(&outer))]);
        let words = [(ROW.interpreter_threads, address(&inner)), (ROW.interpreter_next, address(&first))];
        let newest = structure(&words);
        let runtime = structure(&[(ROW.interpreters, address(&newest))]);
        with_walk(ROW, address(&runtime), |walk| {
            let states = walk.states_in_use(0, ThreadKey { tid: 0, pointer, pc: 0 }, sp, STATES).unwrap();
            assert!(states.has_one);
            states.iter().count()
        })
    }

    #[test]
    fn a_state_whose_evaluator_is_on_another_stack_is_not_in_use_by_the_thread() {
        assert_eq!(in_use(4096, u64::MAX), 2);
        assert_eq!(in_use(u64::MAX - 1, u64::MAX), 0, "further in");
        assert_eq!(in_use(4096, 4097), 0, "further out");
        assert_eq!(in_use(4096, 1), 2, "the first thread's control block is not on its stack");
    }

    /// Regression: the first threads that began after the first subinterpreter was made had no
    /// function.
    #[test]
    fn the_state_of_a_thread_that_is_not_known_yet_is_found_in_any_interpreter() {
        let c_frame = structure(&[]);
        let state = structure(&[(ROW.thread_frame, address(&c_frame)), (ROW.thread_ident, 70)]);
        let first = structure(&[(ROW.interpreter_threads, address(&state))]);
        let newest = structure(&[(ROW.interpreter_next, address(&first))]);
        let runtime = structure(&[(ROW.interpreters, address(&newest))]);
        let ended = |pointer| {
            with_walk(ROW, address(&runtime), |found| {
                let thread = ThreadKey { tid: 0, pointer, pc: 0 };
                walk(found.layout, 0, (thread, NATIVE), found.memory, found.known, found.chain);
                found.chain.end()
            })
        };
        assert_eq!([ended(70), ended(71)], [End::Root, End::NoState]);
    }

    /// Regression: a C thread that called Python again and again had hardly any function.
    #[test]
    fn a_state_that_has_ended_is_not_taken_for_the_one_in_use() {
        let (empty, frame) = (structure(&[]), structure(&[(ROW.frame_code, 4096)]));
        let c_frame = structure(&[(ROW.c_frame.unwrap(), address(&frame))]);
        let state = |c_frame| structure(&[(ROW.thread_frame, c_frame), (ROW.thread_ident, 70)]);
        let (ended, used) = (state(address(&empty)), state(address(&c_frame)));
        let only = structure(&[(ROW.interpreter_threads, address(&used))]);
        let runtime = structure(&[(ROW.interpreters, address(&only))]);
        let end = with_walk(ROW, address(&runtime), |found| {
            let thread = ThreadKey { tid: 0, pointer: 70, pc: 0 };
            walk(found.layout, address(&ended), (thread, NATIVE), found.memory, found.known, found.chain);
            found.chain.end()
        });
        assert_eq!(end, End::Inconsistent, "its one frame is of no function");
    }

    /// Regression: functions that ran with a second state of a thread were missing, and the first
    /// one's had their time.
    #[test]
    fn other_states_are_looked_for_where_calls_of_the_evaluator_have_no_frames() {
        let Entry::Shim(at) = ROW.frame_entry else { panic!("3.12 has shims") };
        let owner = (at / 8 * 8, u64::from(SHIM) << (8 * (at % 8)));
        let shims = [structure(&[owner]), structure(&[owner])];
        let frame = |shim: &[u8]| structure(&[(ROW.frame_code, 4096), (ROW.frame_previous, address(shim))]);
        let (inner, outer) = (frame(&shims[0]), frame(&shims[1]));
        let c_frame = |frame: &[u8]| structure(&[(ROW.c_frame.unwrap(), address(frame))]);
        let c_frames = [c_frame(&inner), c_frame(&outer)];
        let state =
            |c_frame: &[u8]| structure(&[(ROW.thread_frame, address(c_frame)), (ROW.thread_ident, 70)]);
        let (used, known) = (state(&c_frames[0]), state(&c_frames[1]));
        // Behind those of other threads.
        let mut others: Vec<Vec<u8>> = vec![];
        for _ in 0..STATES {
            let next = others.last().map_or(address(&used), |other| address(other));
            others.push(structure(&[(ROW.thread_next, next), (ROW.thread_ident, 71)]));
        }
        let entries = |calls, first: &[u8], is_only: bool| {
            let second = structure(&[]);
            let next = if is_only { 0 } else { address(&second) };
            let words = [(ROW.interpreter_threads, address(first)), (ROW.interpreter_next, next)];
            let interpreter = structure(&words);
            let runtime = structure(&[(ROW.interpreters, address(&interpreter))]);
            with_walk(ROW, address(&runtime), |walk| {
                let thread = ThreadKey { tid: 0, pointer: 70, pc: 0 };
                _ = walk.run_thread(address(&known), thread, NativeCalls { sp: 4096, calls });
                walk.chain.frames().len()
            })
        };
        assert_eq!(entries(0, &used, true), 1);
        assert_eq!(entries(2, &used, true), 2);
        let last = others.last().unwrap();
        assert_eq!([entries(0, last, false), entries(2, last, false)], [1, 2]);
    }

    /// In which order states at these places are.
    fn ordered(places: &[u64]) -> Result<Vec<u64>, End> {
        let mut states = States::default();
        for (number, place) in places.iter().enumerate() {
            states.add(*place, number as u64)?;
        }
        Ok(states.iter().collect())
    }

    #[test]
    fn the_state_whose_evaluator_was_called_last_is_the_innermost() {
        assert_eq!(ordered(&[300, 100, 200]), Ok(vec![1, 2, 0]));
        assert_eq!(ordered(&[100, 200, 300]), Ok(vec![0, 1, 2]));
        assert_eq!(ordered(&[0]), Ok(vec![0]));
        assert_eq!(ordered(&[0, 0]), Err(End::NoState), "nothing says which one is the inner one");
        assert_eq!(ordered(&[9; 9]), Err(End::NoState), "too many");
    }
}
