//! The recordings that `swipr_recording_begin` has started and that have not been ended yet.
//!
//! They are this process's own: the child of a fork has none of its parent's, whose writers do not
//! exist there.

use profiler::for_library::output::Completion;
use profiler::for_library::recording::StopTime;
use std::collections::HashMap;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering::*};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What it takes to end a recording.
#[derive(Debug)]
pub struct RecordingHandle {
    /// Reports when it has ended.
    pub completion: Arc<Completion>,
    /// Set to end it.
    pub stop: Arc<StopTime>,
}

type Recordings = Mutex<HashMap<u64, RecordingHandle>>;

/// Leaked: a forked child starts with none, and touches no lock that may be held for ever.
static RECORDINGS: AtomicPtr<Recordings> = AtomicPtr::new(std::ptr::null_mut());
/// Continues in the child: a number never means two recordings.
static NEXT: AtomicU64 = AtomicU64::new(1);

fn recordings() -> MutexGuard<'static, HashMap<u64, RecordingHandle>> {
    let mut known = RECORDINGS.load(Acquire);
    if known.is_null() {
        let new = Box::into_raw(Box::<Recordings>::default());
        known = match RECORDINGS.compare_exchange(std::ptr::null_mut(), new, AcqRel, Acquire) {
            Ok(_) => new,
            Err(other) => {
                // SAFETY: made above, and no other thread has seen it.
                drop(unsafe { Box::from_raw(new) });
                other
            }
        };
    }
    // SAFETY: not null, so leaked above by this thread or by the one that was faster; never freed.
    unsafe { &*known }.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Remembers a recording; its number.
pub fn insert(recording: RecordingHandle) -> u64 {
    let id = NEXT.fetch_add(1, Relaxed);
    recordings().insert(id, recording);
    id
}

/// The recording with that number, once.
pub fn take(id: u64) -> Option<RecordingHandle> {
    recordings().remove(&id)
}

/// In the child of a fork: there are none. Takes no lock and frees nothing.
pub fn forget_after_fork() {
    RECORDINGS.store(std::ptr::null_mut(), Release);
}
