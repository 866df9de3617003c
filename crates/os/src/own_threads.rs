//! Which threads are the agent's own. Depends on no other module.

use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering::*};

/// How the names of the agent's threads begin. A new thread has its parent's name first, so that
/// begins with this, too.
pub const PREFIX: &str = "swipr-";

/// Places for the ids of the agent's threads; 0: a free one. Not behind a lock, which a fork could
/// leave locked in the child.
struct TidBlock {
    tids: [AtomicU32; 32],
    next: AtomicPtr<TidBlock>,
}

impl TidBlock {
    const fn new() -> TidBlock {
        TidBlock { tids: [const { AtomicU32::new(0) }; 32], next: AtomicPtr::new(std::ptr::null_mut()) }
    }

    fn next(&self) -> Option<&'static TidBlock> {
        // Acquire: pairs with the exchange in `add`.
        // SAFETY: null, or leaked by `add` and never freed.
        unsafe { self.next.load(Acquire).as_ref() }
    }

    /// Adds places behind these.
    fn add(&'static self) {
        let new = Box::into_raw(Box::new(TidBlock::new()));
        let null = std::ptr::null_mut();
        if self.next.compare_exchange(null, new, AcqRel, Relaxed).is_err() {
            // Another thread has added some.
            // SAFETY: made above, and no other thread has seen it.
            drop(unsafe { Box::from_raw(new) });
        }
    }
}

/// Enough for the recordings that there may be at once. More come with a thread that finds none
/// free.
static PLACES: TidBlock = TidBlock::new();

/// The last threads that are not the agent's own any more, but may still be ending. The agent must
/// not allocate where a thread ends.
static ENDING: [AtomicU32; 32] = [const { AtomicU32::new(0) }; 32];
/// How many threads were put there.
static ENDED: AtomicUsize = AtomicUsize::new(0);

fn tids() -> impl Iterator<Item = &'static AtomicU32> {
    std::iter::successors(Some(&PLACES), |places| places.next()).flat_map(|places| &places.tids)
}

impl TidBlock {
    fn put(&self, tid: u32) -> bool {
        self.tids.iter().any(|place| place.compare_exchange(0, tid, AcqRel, Relaxed).is_ok())
    }
}

/// A thread of the agent begins.
pub fn add(tid: u32) {
    let mut places = &PLACES;
    while !places.put(tid) {
        match places.next() {
            Some(next) => places = next,
            None => places.add(),
        }
    }
}

/// A thread of the agent ends: its id may soon be another thread's.
pub fn remove(tid: u32) {
    ENDING[ENDED.fetch_add(1, Relaxed) % ENDING.len()].store(tid, Release);
    tids().find(|place| place.compare_exchange(tid, 0, AcqRel, Relaxed).is_ok());
}

/// How many of the threads that were removed the kernel still has: it has those that are `there`.
pub fn ending(there: impl Fn(u32) -> bool) -> u64 {
    let is_left = |place: &&AtomicU32| match place.load(Acquire) {
        0 => false,
        tid if there(tid) => true,
        tid => place.compare_exchange(tid, 0, Relaxed, Relaxed).is_err(),
    };
    ENDING.iter().filter(is_left).count() as u64
}

/// Whether a thread is the agent's own.
pub fn contains(tid: u32) -> bool {
    tids().any(|place| place.load(Relaxed) == tid)
}

/// The ids of those that there are.
pub fn ids() -> impl Iterator<Item = u32> {
    tids().map(|place| place.load(Relaxed)).filter(|&tid| tid != 0)
}

/// Whether a thread with this name may be the agent's own.
pub fn has_agent_name(name: &str) -> bool {
    name.starts_with(PREFIX)
}

/// After fork, in the child: none of the parent's agent threads exists here.
pub fn clear() {
    tids().chain(&ENDING).for_each(|place| place.store(0, Relaxed));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Regression: there were 32 places, and the agent's 33rd thread was sampled as one of the
    /// program's.
    #[test]
    fn the_agents_threads_are_known_however_many_there_are() {
        // No thread has such an id.
        let few = 1 << 24..(1 << 24) + 200;
        few.clone().for_each(add);
        assert!(few.clone().all(contains));
        few.clone().for_each(remove);
        assert!(!few.clone().any(contains));
        assert_eq!(ending(|tid| tid == (1 << 24) + 199), 1, "the last one is still there");
        assert_eq!(ending(|_| true), 1, "the others are gone for good");
        assert_eq!(ending(|_| false), 0);
    }
}
