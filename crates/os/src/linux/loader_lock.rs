//! The dynamic loader's lock on its list of objects, taken without waiting.
//!
//! dl_iterate_phdr(3) waits for it and holds it while it calls back. A program may stay in such a
//! callback for as long as it likes, and fork there. glibc does not say where the lock is. But it
//! is an ordinary mutex (pthread.h) among the loader's own data, and the calling thread holds it
//! during a callback. Of the mutexes there that name this thread as their owner, it is the one that
//! a nested call takes a second time. Where there is none (musl calls back without its lock) there
//! is nothing to wait for either.
//!
//! Once it is known, pthread_mutex_trylock(3) takes it. dl_iterate_phdr then finds it held by the
//! same thread and does not wait.

use super::fork_gate::AgentInside;
use super::process;
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering::*};

/// Where the lock is; 0: not known.
static LOCK: AtomicUsize = AtomicUsize::new(0);
static SEARCHED: AtomicBool = AtomicBool::new(false);

/// A larger part of an object is not searched: the loader's own data is a few pages.
const MAX_BYTES: usize = 64 << 10;
/// Mutexes that this thread may hold at once among them.
const MAX_HELD: usize = 4;

/// The first words of glibc's `pthread_mutex_t` on 64-bit systems (bits/struct_mutex.h), which are
/// part of its ABI.
#[repr(C)]
struct Mutex {
    lock: AtomicI32,
    count: AtomicI32,
    owner: AtomicI32,
    users: AtomicI32,
    kind: AtomicI32,
}

impl Mutex {
    fn is_held(&self, tid: i32, times: i32) -> bool {
        self.kind.load(Relaxed) == libc::PTHREAD_MUTEX_RECURSIVE
            && self.owner.load(Relaxed) == tid
            && self.count.load(Relaxed) == times
            && matches!(self.lock.load(Relaxed), 1 | 2)
    }
}

/// The list of objects is held: it does not change, and this thread's calls of the loader do not
/// wait. Not to be kept while memory is allocated.
#[derive(Debug)]
pub struct ObjectList {
    lock: usize,
    _inside: AgentInside,
}

impl ObjectList {
    /// Takes the lock; `None`: another thread has it.
    pub fn try_hold() -> Option<ObjectList> {
        find();
        let inside = AgentInside::enter()?;
        let lock = LOCK.load(Acquire);
        // SAFETY: `find` proved that it is a mutex; it belongs to the loader, which is never
        // unloaded.
        let is_ours =
            lock == 0 || unsafe { libc::pthread_mutex_trylock(lock as *mut libc::pthread_mutex_t) } == 0;
        is_ours.then_some(ObjectList { lock, _inside: inside })
    }
}

impl Drop for ObjectList {
    fn drop(&mut self) {
        if self.lock != 0 {
            // SAFETY: as in `try_hold`, where this thread has taken it.
            unsafe { libc::pthread_mutex_unlock(self.lock as *mut libc::pthread_mutex_t) };
        }
    }
}

/// Finds the lock, once. This call does wait for the lock: make it where no thread can be in a
/// callback yet.
pub fn find() {
    if SEARCHED.swap(true, AcqRel) {
        return;
    }
    // SAFETY: no preconditions.
    let base = unsafe { libc::getauxval(libc::AT_BASE) };
    let mut search = Search { tid: process::tid() as i32, base, held: [0; MAX_HELD], number: 0, found: 0 };
    let _inside = AgentInside::enter();
    // SAFETY: `first` has the signature asked for and gets `search`.
    unsafe { libc::dl_iterate_phdr(Some(first), (&raw mut search).cast()) };
    if let Some(mutex) = mutex_at(search.found)
        && mutex.owner.load(Relaxed) != search.tid
    {
        LOCK.store(search.found, Release);
    }
}

struct Search {
    tid: i32,
    base: u64,
    /// Mutexes that this thread holds.
    held: [usize; MAX_HELD],
    number: usize,
    found: usize,
}

/// `None` for 0 only.
fn mutex_at(address: usize) -> Option<&'static Mutex> {
    // SAFETY: null, or an address in the loader's data that `look_in` has found to have room for
    // it.
    unsafe { (address as *const Mutex).as_ref() }
}

impl Search {
    /// Records the mutexes of this thread in `bytes` bytes of the loader's data.
    fn look_in(&mut self, start: usize, bytes: usize) {
        let end =
            start.saturating_add(bytes.min(MAX_BYTES)).saturating_sub(size_of::<libc::pthread_mutex_t>());
        for address in (start.next_multiple_of(8)..=end).step_by(8) {
            if mutex_at(address).is_some_and(|mutex| mutex.is_held(self.tid, 1))
                && let Some(place) = self.held.get_mut(self.number)
            {
                *place = address;
                self.number += 1;
            }
        }
    }
}

/// Called for each object: searches the loader's own.
unsafe extern "C" fn first(info: *mut libc::dl_phdr_info, _: usize, data: *mut c_void) -> c_int {
    // SAFETY: the loader passes a valid info and `find` a valid Search; the headers are valid
    // during the call.
    let (info, search) = unsafe { (&*info, &mut *data.cast::<Search>()) };
    if info.dlpi_addr != search.base || info.dlpi_phdr.is_null() {
        return 0;
    }
    // SAFETY: as above.
    let headers = unsafe { std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) };
    for header in
        headers.iter().filter(|header| header.p_type == libc::PT_LOAD && header.p_flags & libc::PF_W != 0)
    {
        search.look_in(info.dlpi_addr.wrapping_add(header.p_vaddr) as usize, header.p_memsz as usize);
    }
    // SAFETY: the loader allows calls within calls: its lock is recursive, or not held.
    unsafe { libc::dl_iterate_phdr(Some(again), data) };
    1
}

/// Called by the nested call: finds the mutex that is now held twice.
unsafe extern "C" fn again(_: *mut libc::dl_phdr_info, _: usize, data: *mut c_void) -> c_int {
    // SAFETY: as in `first`, which does not use its reference meanwhile.
    let search = unsafe { &mut *data.cast::<Search>() };
    let held = search.held.get(..search.number).unwrap_or(&[]);
    let mut twice =
        held.iter().filter(|&&address| mutex_at(address).is_some_and(|it| it.is_held(search.tid, 2)));
    if let (Some(&found), None) = (twice.next(), twice.next()) {
        search.found = found;
    }
    1
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{Receiver, Sender, channel};

    type Ends = (Sender<()>, Receiver<()>);

    unsafe extern "C" fn stay(_: *mut libc::dl_phdr_info, _: usize, data: *mut c_void) -> c_int {
        // SAFETY: the test passes its ends of the channels.
        let (sent, wait) = unsafe { &*data.cast::<Ends>() };
        sent.send(()).unwrap();
        let _ = wait.recv();
        1
    }

    /// Regression: the sampler waited at each tick for a thread in such a callback, and a fork
    /// there waited for the sampler.
    #[test]
    #[cfg(target_env = "gnu")]
    fn who_finds_the_list_held_by_another_thread_does_not_wait() {
        find();
        let ((sent, received), (end, wait)) = (channel(), channel());
        let thread = std::thread::spawn(move || {
            let mut ends: Ends = (sent, wait);
            // SAFETY: `stay` has the signature asked for and gets `ends`.
            unsafe { libc::dl_iterate_phdr(Some(stay), (&raw mut ends).cast()) };
        });
        received.recv().unwrap();
        assert!(ObjectList::try_hold().is_none());
        drop(end);
        thread.join().unwrap();
        // Other tests take it, too, for a moment each.
        let is_free = || (0..1_000_000).any(|_| ObjectList::try_hold().is_some());
        assert!(is_free());
        assert!(std::thread::spawn(is_free).join().unwrap(), "its holder has given it back");
    }
}
