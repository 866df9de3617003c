//! What handlers share with the sampler, in every order of events: slots, the published tables, the
//! caches in front of them. The files are those of `unwind`. A signal is a word that a thread may
//! find at any time, which orders nothing by itself.

#[path = "../shared/atomic.rs"]
mod atomic;
#[path = "../../../../crates/unwind/src/cache/entry.rs"]
mod entry;
#[path = "../../../../crates/unwind/src/published/pointer.rs"]
#[allow(dead_code)] // `unpublish` is for the agent's end.
mod pointer;
#[path = "../../../../crates/unwind/src/slot/state.rs"]
#[allow(dead_code)] // `reset` is for the child of a fork, which has one thread.
mod state;

use atomic::{AtomicPtr, AtomicU64, Ordering::Relaxed};
use entry::Entry;
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;
use pointer::Pointer;
use state::State;

/// A slot: its state, what the sampler wrote for the handler, and what the handler writes.
struct Slot {
    state: State,
    bounds: AtomicU64,
    workspace: UnsafeCell<u64>,
    answer: AtomicU64,
    /// The generation that travels with the signal, plus 1.
    signal: AtomicU64,
}

impl Slot {
    fn new() -> Arc<Slot> {
        Arc::new(Slot {
            state: State(AtomicU64::new(0)),
            bounds: AtomicU64::new(0),
            workspace: UnsafeCell::new(0),
            answer: AtomicU64::new(0),
            signal: AtomicU64::new(0),
        })
    }

    /// Sampler: lends it with bounds that encode the generation, and sends the signal.
    fn ask(&self) -> u32 {
        let generation = self.state.free().unwrap();
        self.bounds.store(10 + u64::from(generation), Relaxed);
        assert!(self.state.acquire(generation));
        self.signal.store(1 + u64::from(generation), Relaxed);
        generation
    }

    /// Handler: answers the request, if that is still valid.
    fn answer(&self) {
        let Some(generation) = self.signal.load(Relaxed).checked_sub(1) else { return };
        let generation = generation as u32;
        if self.state.begin(generation) {
            let bounds = self.bounds.load(Relaxed);
            assert!([10 + u64::from(generation), 20].contains(&bounds), "the bounds it was lent with");
            // SAFETY: `begin` says that nothing else has it; loom checks that.
            self.workspace.with_mut(|place| unsafe { *place = bounds });
            self.answer.store(bounds, Relaxed);
            self.state.end(generation);
        }
    }
}

#[test]
fn an_answer_is_whole_and_a_late_one_writes_nothing() {
    loom::model(|| {
        let slot = Slot::new();
        let other = slot.clone();
        let handler = thread::spawn(move || other.answer());
        let mut generation = slot.ask();
        if slot.state.is_done(generation) {
            assert_eq!(slot.answer.load(Relaxed), 10, "what the handler wrote");
            slot.bounds.store(20, Relaxed);
            slot.state.again(generation);
            slot.answer();
            assert_eq!(slot.answer.load(Relaxed), 20, "the bounds it was lent again with");
            slot.state.release(generation);
            generation = slot.ask();
        } else if slot.state.cancel(generation) {
            assert_eq!(slot.answer.load(Relaxed), 0, "nothing was written");
            generation = slot.ask();
        }
        if slot.state.is_done(generation) {
            assert_eq!(slot.answer.load(Relaxed), 10 + u64::from(generation));
        }
        handler.join().unwrap();
    });
}

#[test]
fn two_handlers_never_write_one_slot_at_once() {
    loom::model(|| {
        let slot = Slot::new();
        let generation = slot.ask();
        let other = slot.clone();
        let late = thread::spawn(move || other.answer());
        if slot.state.cancel(generation) {
            slot.ask();
        }
        slot.answer();
        late.join().unwrap();
        assert!(!slot.state.is_written());
    });
}

/// Tables: a rule, and whether the memory is still there.
struct Tables {
    rule: u64,
    /// Read by handlers, written when it is freed.
    memory: UnsafeCell<bool>,
}

impl Tables {
    fn new(rule: u64) -> *mut Tables {
        Box::into_raw(Box::new(Tables { rule, memory: UnsafeCell::new(true) }))
    }
}

struct Shared {
    slot: Arc<Slot>,
    current: Pointer<Tables>,
    cache: Entry,
}

impl Shared {
    fn new(tables: *mut Tables) -> Arc<Shared> {
        Arc::new(Shared {
            slot: Slot::new(),
            current: Pointer(AtomicPtr::new(tables)),
            cache: Entry(AtomicU64::new(0)),
        })
    }

    /// Handler: looks a rule up, through the cache.
    fn look_up(&self) -> Option<u64> {
        let generation = self.slot.signal.load(Relaxed).checked_sub(1)? as u32;
        if !self.slot.state.begin(generation) {
            return None;
        }
        // SAFETY: tables are given back at the end of the model only; that they count as freed is
        // loom's to find.
        let tables = unsafe { &*self.current.current() };
        // SAFETY: nobody writes while handlers may read; loom sees to it.
        tables.memory.with(|there| assert!(unsafe { *there }, "freed under a handler"));
        let rule = match self.cache.get() {
            0 => {
                self.cache.put(tables.rule);
                tables.rule
            }
            known => known,
        };
        self.slot.state.end(generation);
        Some(rule)
    }

    /// Sampler: as `Publication` does it. Whether the old tables were freed.
    fn replace(&self, new: *mut Tables) -> bool {
        let old = self.current.publish(new);
        self.cache.clear();
        if self.slot.state.is_written() {
            return false;
        }
        // SAFETY: no handler is writing: nobody can have the old ones any more; loom sees to it.
        unsafe { (*old).memory.with_mut(|there| *there = false) };
        self.cache.clear();
        true
    }
}

fn with_tables(body: impl Fn(Arc<Shared>, *mut Tables) + Send + Sync + 'static) {
    loom::model(move || {
        let (old, new) = (Tables::new(1), Tables::new(2));
        body(Shared::new(old), new);
        // SAFETY: made above, and all threads have ended.
        unsafe { (drop(Box::from_raw(old)), drop(Box::from_raw(new))) };
    });
}

#[test]
fn tables_are_not_freed_under_a_handler() {
    with_tables(|shared, new| {
        shared.slot.ask();
        let other = shared.clone();
        let handler = thread::spawn(move || {
            other.look_up();
        });
        shared.replace(new);
        handler.join().unwrap();
    });
}

#[test]
fn once_tables_were_freed_none_of_their_rules_is_remembered() {
    with_tables(|shared, new| {
        let generation = shared.slot.ask();
        let other = shared.clone();
        let handler = thread::spawn(move || {
            other.look_up();
        });
        let is_freed = shared.replace(new);
        if is_freed {
            let remembered = shared.cache.get();
            assert!(matches!(remembered, 0 | 2), "rule {remembered} is of tables that are gone");
        }
        handler.join().unwrap();
        if is_freed {
            shared.slot.state.release(generation);
            shared.slot.state.cancel(generation);
            shared.slot.ask();
            assert_eq!(shared.look_up(), Some(2));
        }
    });
}

#[test]
fn a_reader_of_the_cache_finds_a_whole_entry() {
    loom::model(|| {
        let cache = Arc::new(Entry(AtomicU64::new(0)));
        let writers = [0x1111_1111_1111_1111, 0x2222_2222_2222_2222].map(|word| {
            let cache = cache.clone();
            thread::spawn(move || cache.put(word))
        });
        assert!(matches!(cache.get(), 0 | 0x1111_1111_1111_1111 | 0x2222_2222_2222_2222));
        cache.clear();
        writers.into_iter().for_each(|writer| writer.join().unwrap());
    });
}
