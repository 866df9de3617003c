//! Where each thread has the variable that leads to its execution context: looked for below the
//! control blocks of the threads that Ruby lists, by its value. Objects that are loaded with the
//! program have their variables at one distance from it in all threads.

use super::super::thread_states::StateList;
use super::Exported;
use swipr_runtimes::ruby::{CurrentContext, RubyLayout};

/// Bytes that are searched, and read at a time.
const SEARCHED: i64 = 16 << 10;
const PART: i64 = 512;
/// Threads whose variables are looked for.
const MAX_THREADS: usize = 8;

/// Times that it is looked for: a thread may change its context meanwhile, for a fiber.
const TURNS: usize = 4;

/// Of all threads the only place at which each has its context. A thread that has not run yet has
/// none; the readers of the variable check what it leads to.
pub fn of_thread(exported: &Exported, layout: &RubyLayout) -> CurrentContext {
    let mut turns = (0..TURNS).map(|_| find_once(exported, layout));
    turns.find(|found| *found != CurrentContext::Unknown).unwrap_or(CurrentContext::Unknown)
}

fn find_once(exported: &Exported, layout: &RubyLayout) -> CurrentContext {
    if cfg!(not(target_arch = "x86_64")) {
        // What the C library calls a thread by is not where its variables are counted from.
        return CurrentContext::Unknown;
    }
    let states = layout.states(exported.memory_file()).into_iter().take(MAX_THREADS);
    let places = states.filter_map(|state| {
        let context =
            exported.copy(state.state + u64::from(layout.row.thread_context)).map(u64::from_ne_bytes)?;
        Some(places_of(context, state.ident, exported)).filter(|places| !places.is_empty())
    });
    let common = places.reduce(|some, others| some.into_iter().filter(|at| others.contains(at)).collect());
    match common.as_deref() {
        Some(&[at]) => CurrentContext::OfThread(at),
        _ => CurrentContext::Unknown,
    }
}

/// Where below a thread's control block this word is.
fn places_of(word: u64, pointer: u64, exported: &Exported) -> Vec<i64> {
    let mut found = vec![];
    for part in 1..=SEARCHED / PART {
        let start = -part * PART;
        let part: Option<[u8; PART as usize]> = exported.copy(pointer.wrapping_add_signed(start));
        let Some(part) = part else { break };
        let words = part.as_chunks::<8>().0.iter().zip((start..).step_by(8));
        found.extend(words.filter(|(bytes, _)| u64::from_ne_bytes(**bytes) == word).map(|(_, at)| at));
    }
    found
}
