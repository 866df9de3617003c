//! Whether a stack of `truth.c` can be true. Its functions are a tree: `f_01` is called by `f_0`
//! and by no other function, `h_…` are the same under its signal handler. So the names show any
//! frame that is missing, too much or stale.

use crate::recording::Sample;

/// How the program was compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Jumps {
    /// Functions with an even number of digits, the last a 1, leave by a jump: they are not in
    /// their callee's stack.
    Taken,
    /// They call, as the others do.
    AreCalls,
}

/// What is known of a stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is possible.
    True,
    /// It says itself that it does not reach the thread's root.
    Cut,
    /// It is impossible: why.
    Wrong(String),
}

/// Frames of the C library above a thread's function (`start_thread`, `clone3`), at most.
const START_FRAMES: usize = 3;
/// Frames of the C library below the tree: a call that blocks and what it calls, and a signal's
/// trampoline.
const FOREIGN_FRAMES: usize = 6;

/// Judges a stack of a `runner` or `waiter`.
pub fn judge(sample: &Sample, jumps: Jumps) -> Verdict {
    // A remark at the leaf says what the thread waits for.
    let is_state = |name: &&str| name.starts_with("[blocked") || *name == "[waiting for a CPU]";
    let names = sample.frames.iter().map(|frame| frame.name.as_str());
    let names: Vec<&str> = names.filter(|name| !is_state(name)).collect();
    if names.iter().any(|name| name.starts_with("[truncated") || name.ends_with("elided]")) {
        return Verdict::Cut;
    }
    match fault(&names, jumps) {
        None => Verdict::True,
        Some(why) => Verdict::Wrong(format!("{why} in {}", sample.chain())),
    }
}

/// What is impossible in a stack, outermost first.
fn fault(names: &[&str], jumps: Jumps) -> Option<String> {
    let Some(start) = names.iter().position(|&name| name == "thread_main") else {
        return Some("no thread_main".into());
    };
    if start == 0 || start > START_FRAMES || !names[..start].iter().all(|name| is_foreign(name)) {
        return Some("a strange start of the thread".into());
    }
    let mut in_handler = false;
    let mut foreign = 0;
    for (at, pair) in names.windows(2).enumerate().skip(start) {
        let (caller, name) = (pair[0], pair[1]);
        let next = names.get(at + 2).copied();
        let wrong = || Some(format!("{name} under {caller}"));
        if is_node(name) {
            let tree_fits = name.starts_with("h_") == in_handler;
            if !tree_fits || foreign > 0 || caller != caller_of(name, jumps) {
                return wrong();
            }
        } else if name == "on_timer" {
            // The kernel's frame is between it and what it interrupted.
            if in_handler || foreign == 0 {
                return wrong();
            }
            (in_handler, foreign) = (true, 0);
        } else if is_foreign(name) || name == "draw" || name == "wait_a_moment" {
            // Only a signal leads from the tree out of the program; its trampoline is still there
            // when its handler is not.
            let is_trampoline = next == Some("on_timer") || next.is_none() && !name.starts_with("[truth");
            let from_tree = is_node(caller) && is_foreign(name) && !is_trampoline;
            foreign += 1;
            if from_tree || foreign > FOREIGN_FRAMES {
                return wrong();
            }
        } else {
            return wrong();
        }
    }
    None
}

/// A function of the tree.
fn is_node(name: &str) -> bool {
    let digits = name.strip_prefix("f_").or_else(|| name.strip_prefix("h_"));
    digits.is_some_and(|digits| digits.bytes().all(|digit| digit == b'0' || digit == b'1'))
}

/// Nothing of the program's own.
fn is_foreign(name: &str) -> bool {
    let own = ["thread_main", "on_timer", "main", "_start", "start_timer", "draw", "wait_a_moment"];
    !is_node(name) && !own.contains(&name) && !name.starts_with("host_")
}

fn caller_of(name: &str, jumps: Jumps) -> &str {
    let mut caller = match name {
        "f_" => return "thread_main",
        "h_" => return "on_timer",
        _ => &name[..name.len() - 1],
    };
    let is_jumping = |name: &str| name.len() > 2 && name.len().is_multiple_of(2) && name.ends_with('1');
    if jumps == Jumps::Taken && is_jumping(caller) {
        caller = &caller[..caller.len() - 1];
    }
    caller
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(stack: &str, jumps: Jumps) -> bool {
        fault(&stack.split(';').collect::<Vec<_>>(), jumps).is_none()
    }

    #[test]
    fn what_the_program_does_is_possible() {
        for stack in [
            "clone3;start_thread;thread_main",
            "clone3;start_thread;thread_main;f_;f_0;f_00;f_001",
            "clone3;start_thread;thread_main;f_;f_0;f_00;wait_a_moment;nanosleep;clock_nanosleep",
            "clone3;start_thread;thread_main;f_;__restore_rt;on_timer;h_;h_1;h_10;draw",
            "clone3;start_thread;thread_main;f_;wait_a_moment;read;__restore_rt;on_timer",
        ] {
            assert!(judged(stack, Jumps::Taken) && judged(stack, Jumps::AreCalls), "{stack}");
        }
        let jumped = "clone3;thread_main;f_;f_0;f_010";
        assert!(judged(jumped, Jumps::Taken) && !judged(jumped, Jumps::AreCalls));
        let called = "clone3;thread_main;f_;f_0;f_01;f_010";
        assert!(judged(called, Jumps::AreCalls) && !judged(called, Jumps::Taken));
    }

    #[test]
    fn a_frame_that_is_missing_stale_or_too_much_is_seen() {
        for stack in [
            "thread_main;f_",
            "clone3;f_;f_0",
            "clone3;thread_main;f_0",
            "clone3;thread_main;f_;f_00",
            "clone3;thread_main;f_;f_0;f_10",
            "clone3;thread_main;f_;f_0;f_0",
            "clone3;thread_main;f_;h_",
            "clone3;thread_main;f_;on_timer",
            "clone3;thread_main;f_;nanosleep;clock_nanosleep",
            "clone3;thread_main;f_;[truth]",
            "clone3;thread_main;f_;wait_a_moment;nanosleep;f_0",
            "clone3;thread_main;f_;__restore_rt;on_timer;f_0",
            "clone3;thread_main;f_;main",
        ] {
            assert!(!judged(stack, Jumps::Taken) && !judged(stack, Jumps::AreCalls), "{stack}");
        }
    }
}
