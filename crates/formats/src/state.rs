//! What a thread was doing, in words. Which call it is, is `syscalls.rs`.

use std::borrow::Cow;

use crate::Options;
use crate::model::{Mode, State};
use crate::syscalls;

/// The one word for it that all formats with a place of its own for states use.
pub(crate) fn word(state: State) -> &'static str {
    match state {
        State::Running => "running",
        State::Runnable => "runnable",
        State::Blocked(_) => "blocked",
    }
}

/// For people: `running`, `waiting for a CPU`, `blocked in futex`.
pub(crate) fn phrase(state: State) -> Cow<'static, str> {
    match state {
        State::Running => "running".into(),
        State::Runnable => "waiting for a CPU".into(),
        State::Blocked(None) => "blocked".into(),
        State::Blocked(Some(number)) => match syscalls::name(number) {
            Some(name) => format!("blocked in {name}").into(),
            None => format!("blocked in system call {number}").into(),
        },
    }
}

/// The remark that shows it at the leaf of a stack, in formats that have no other place: what
/// a thread that does not run waits for. Only where threads that wait are recorded.
pub(crate) fn leaf(state: State, mode: Mode, options: &Options) -> Option<String> {
    let shown = options.states && mode == Mode::Wall && state != State::Running;
    shown.then(|| format!("[{}]", phrase(state)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_leaf_tells_what_a_thread_waits_for_and_nothing_of_one_that_runs() {
        let options = Options::default();
        let leaf = |state, mode| leaf(state, mode, &options);
        assert_eq!(leaf(State::Running, Mode::Wall), None);
        assert_eq!(leaf(State::Runnable, Mode::Wall).as_deref(), Some("[waiting for a CPU]"));
        assert_eq!(leaf(State::Blocked(None), Mode::Wall).as_deref(), Some("[blocked]"));
        assert_eq!(
            leaf(State::Blocked(Some(9999)), Mode::Wall).as_deref(),
            Some("[blocked in system call 9999]")
        );
        assert_eq!(leaf(State::Runnable, Mode::Cpu), None);
    }

    #[test]
    fn the_leaf_can_be_left_out() {
        let options = Options { states: false, ..Options::default() };
        assert_eq!(leaf(State::Runnable, Mode::Wall, &options), None);
    }
}
