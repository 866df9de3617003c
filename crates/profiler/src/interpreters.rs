//! Interpreters in this process: finds one when objects are loaded, gives the handlers what they
//! read its frames with, and takes what they have read. Belongs to the sampler.
//!
//! A process without an interpreter has nothing of this but a few words that are read of each new
//! object.

mod code_references;
mod cold_part;
mod compiled_codes;
mod exported;
mod found;
mod functions;
mod java;
mod java_codes;
mod perl;
mod php;
mod publication;
mod python;
mod reading;
mod ruby;
mod thread_states;
mod v8;
mod vm_structs;
mod wanted;

use crate::counters::AgentCounters;
use exported::Exported;
use found::{FoundRuntime, NotRead, because};
pub use functions::{Interpreted, InterpretedFrame};
pub use publication::reset_after_fork;
use reading::Reading;
use std::ops::Range;
use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use swipr_formats::model::Language;
use swipr_os::locks::lock;
use swipr_os::memory::map_forever;
use swipr_os::objects::{self, Object};
use swipr_os::process;
use swipr_runtimes::merge::RuntimeCode;
use swipr_runtimes::room::{End, Room};
use swipr_unwind::frame_runs::NativeFrames;
use swipr_unwind::frames::{self, EXACT};
use swipr_unwind::slot::Slot;
use swipr_unwind::walk::Stop;
pub use wanted::Wanted;

/// Whether threads may have names that the kernel does not know: the program has a CPython.
pub fn may_name_threads() -> bool {
    swipr_unwind::memory::set_process(process::pid() as i32);
    let has_python = |object: &Object| {
        Exported::of(object, -1).is_some_and(|exported| exported.find(python::HEAD).is_some())
    };
    objects::list().is_none_or(|list| list.iter().any(has_python))
}

/// The interpreter of this process, if there is one whose frames can be read.
#[derive(Debug, Default)]
pub struct Interpreters {
    wanted: Wanted,
    memory_file: i32,
    state: Mutex<Discovery>,
}

#[derive(Debug, Default)]
struct Discovery {
    reading: Option<Reading>,
    /// What there is, or why it is not read.
    text: Option<String>,
    /// The object that the one that is read is in.
    found: Option<ObjectKey>,
    /// Objects without one that can be read.
    without: Vec<ObjectKey>,
    /// When one that had not started was found, first and last.
    not_started: Option<(Instant, Instant)>,
}

/// One that has not started is identified again after so long, and later each time that the wait
/// has grown by one part in so many.
const FIRST_RETRY: Duration = Duration::from_millis(10);
const WAIT_PARTS: u32 = 8;

/// How an object is recognised: its bias, the end of its code, its name.
type ObjectKey = (u64, u64, String);

impl Interpreters {
    /// None was looked for yet; `memory_file` as for
    /// [`guarded_copy_or_file`](swipr_unwind::memory::guarded_copy_or_file).
    pub fn new(wanted: Wanted, memory_file: i32) -> Interpreters {
        Interpreters { wanted, memory_file, ..Interpreters::default() }
    }

    /// Looks for one among the loaded objects, given with their code. Returns where its code is.
    /// One that is read stays the one, whatever else is loaded; else the first that can be read is
    /// it.
    pub fn refresh<'o>(
        &self,
        objects: impl Iterator<Item = (&'o Object, Range<u64>)>,
    ) -> Option<Arc<RuntimeCode>> {
        let mut state = lock(&self.state).filter(|_| self.wanted != Wanted::OFF)?;
        let key_of = |object: &Object, text: &Range<u64>| (object.bias, text.end, object.name.clone());
        let objects: Vec<_> = objects.collect();
        if let Some(reading) = &state.reading
            && objects.iter().any(|(object, text)| state.found.as_ref() == Some(&key_of(object, text)))
        {
            return Some(reading.code.clone());
        }
        let (mut without, mut waits) = (Vec::new(), false);
        let (mut found, mut text) = (None, state.text.take().filter(|_| state.reading.is_none()));
        // The loader does not name the executable.
        let program = objects.iter().find(|(object, _)| object.name.is_empty());
        let program = program.and_then(|(object, _)| Exported::of(object, self.memory_file)).map(Rc::new);
        for (object, code) in objects {
            let key = key_of(object, &code);
            let exported =
                if state.without.contains(&key) { None } else { Exported::of(object, self.memory_file) };
            let program = program.clone().filter(|_| !object.name.is_empty());
            let exported = exported.map(|exported| exported.within(program));
            match exported.and_then(|exported| self.identify(&exported, object, code)) {
                None => without.push(key),
                Some(Err(NotRead::NotYet)) => waits = true,
                Some(Err(NotRead::Because(why))) => {
                    text.get_or_insert(why);
                    without.push(key);
                }
                Some(Ok(runtime)) => {
                    found = Some((key, runtime));
                    break;
                }
            }
        }
        let now = Instant::now();
        let since = state.not_started.map_or(now, |(first, _)| first);
        *state = Discovery { without, text, ..Discovery::default() };
        let Some((key, FoundRuntime { runtime, code, name })) = found else {
            state.not_started = waits.then_some((since, now));
            return None;
        };
        let reading = state.reading.insert(Reading::new(runtime, code, self.memory_file));
        let code = reading.code.clone();
        (state.found, state.text) = (Some(key), Some(name));
        Some(code)
    }

    /// Whether it is time for another [`Interpreters::refresh`]: an interpreter starts without
    /// loading anything.
    pub fn may_have_started(&self) -> bool {
        let not_started = lock(&self.state).and_then(|state| state.not_started);
        not_started.is_some_and(|(first, last)| {
            last.elapsed() >= FIRST_RETRY.max(last.duration_since(first) / WAIT_PARTS)
        })
    }

    /// The interpreter in that object, with its code there; `None`: it has none that is wanted.
    fn identify(
        &self,
        exported: &Exported,
        object: &Object,
        text: Range<u64>,
    ) -> Option<Result<FoundRuntime, NotRead>> {
        let exports = |language, symbol: &str| exported.find(symbol).filter(|_| self.wanted.has(language));
        if let Some(head) = exports(Language::Python, python::HEAD) {
            return Some(python::find(exported, &head, object, text));
        }
        if let Some(run_loop) = exports(Language::Perl, perl::RUN_LOOP) {
            return Some(perl::find(exported, run_loop, text));
        }
        if exports(Language::Ruby, ruby::VERSION).is_some() {
            return ruby::find(exported, object, text);
        }
        if let Some(run_loop) = exports(Language::Php, php::RUN_LOOP) {
            return Some(php::find(exported, run_loop, object, text));
        }
        if exports(Language::Java, vm_structs::STRUCTURES).is_some() {
            return Some(java::find(exported, text));
        }
        exports(Language::JavaScript, v8::FUNCTION_TYPE).map(|_| v8::find(exported, text))
    }

    /// What there is, for the status.
    pub fn text(&self) -> Option<String> {
        lock(&self.state)?.text.clone()
    }

    /// Whether one was found that is read.
    pub fn is_read(&self) -> bool {
        lock(&self.state).is_some_and(|state| state.reading.is_some())
    }

    /// What the program calls a thread, where the interpreter does not tell the kernel.
    pub fn thread_name(&self, tid: u32) -> Option<String> {
        lock(&self.state)?.reading.as_mut()?.thread_name(tid)
    }

    /// Frees what handlers do not use any more.
    pub fn free_retired(&self) {
        if let Some(reading) = lock(&self.state).as_mut().and_then(|state| state.reading.as_mut()) {
            reading.publication.free_retired();
        }
    }

    /// Prepares a slot that no handler can claim now for the next answer of that thread.
    pub fn prepare(&self, slot: &Slot, tid: u32) {
        let mut state = lock(&self.state);
        let Some(reading) = state.as_mut().and_then(|state| state.reading.as_mut()) else { return };
        if slot.room.load(Relaxed).is_null() {
            let Some(memory) = map_forever(size_of::<Room>()) else { return };
            slot.room.store(memory.cast(), Relaxed);
        }
        // SAFETY: mapped above, for ever, and zeroed; no handler can claim the slot.
        if let Some(room) = unsafe { slot.room.load(Relaxed).cast::<Room>().as_mut() } {
            room.chain.begin();
            room.state.store(reading.state_of(tid).unwrap_or(0), Relaxed);
        }
    }

    /// Takes the frames that the handler has left in an answered slot.
    pub fn take(&self, slot: &Slot, tid: u32, counters: &AgentCounters) -> Interpreted {
        // SAFETY: a room stays for ever, and the slot is answered: no handler writes to it.
        let room = unsafe { slot.room.load(Relaxed).cast::<Room>().as_ref() };
        let Some(room) = room else { return Interpreted::default() };
        let words = || frames::kept(&slot.frames, slot.total.load(Relaxed) as usize);
        self.with(|reading| {
            let mut interpreted = Interpreted::default();
            if room.chain.end() != End::NotAsked {
                reading.remember(tid, room.thread_pointer.load(Relaxed));
                interpreted = reading.take_answer(tid, room, counters);
            }
            reading.with_compiled(interpreted, words)
        })
    }

    /// Reads the frames of a blocked thread, unless the native ones say that there are none.
    /// Whether it stood still, the caller finds out.
    pub fn read_blocked(
        &self,
        tid: u32,
        stack: impl FnOnce() -> Range<u64>,
        (native, stop): (NativeFrames<'_>, Stop),
        counters: &AgentCounters,
    ) -> Interpreted {
        let has_frames = |reading: &Reading| match reading.is_native() {
            true => !native.runs.kept().is_empty(),
            false => stop != Stop::Root || native.words().any(|word| reading.may_run(word & !EXACT)),
        };
        self.with(|reading| match has_frames(reading) {
            true => {
                let interpreted = reading.read_blocked(tid, native, stack, counters);
                reading.with_compiled(interpreted, || native.words())
            }
            false => Interpreted::default(),
        })
    }

    fn with(&self, read: impl FnOnce(&mut Reading) -> Interpreted) -> Interpreted {
        let Some(mut state) = lock(&self.state) else { return Interpreted::default() };
        let Some(reading) = &mut state.reading else { return Interpreted::default() };
        let interpreted = read(reading);
        if reading.is_mostly_wrong() {
            state.reading = None;
            let found = state.found.take();
            state.without.extend(found);
            let name = state.text.take().unwrap_or_default();
            state.text = Some(because(&name, "most of its frames could not be read"));
        }
        interpreted
    }
}
