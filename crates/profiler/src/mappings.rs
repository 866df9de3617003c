//! What code is where: the loaded objects with their unwind tables, and all other executable
//! memory.
//!
//! [`Tables`] belongs to the sampler. It keeps the objects' tables, publishes them to the handlers
//! and hands out [`Mappings`]: an immutable view that a stack holds on to, so that its names can
//! still be found after the object was unloaded.

mod debug_frame;
mod inherited;
mod jit_tables;
mod loaded;
mod map;
mod origin;
mod own_stacks;
mod publication;
mod reader;
mod registered;
mod undescribed;
mod unwind_info;

use crate::interpreters::{Interpreters, Wanted};
pub use inherited::inherit;
pub use jit_tables::JitTables;
use loaded::LoadedObject;
pub use map::{Code, JitDump, Mappings, Symbols};
use own_stacks::OwnStacks;
use publication::Publication;
use registered::Registered;
use std::cell::OnceCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::*};
use std::time::{Duration, Instant};
use swipr_formats::model::Module;
use swipr_os::maps::{self, Mapping};
use swipr_os::objects::{self, Changes};
use swipr_os::{process, timer_delivery};
use swipr_symbols::rows::order::sorted_by;
use swipr_unwind::published::{self, Range};
use swipr_unwind::rule::Rule;
use swipr_unwind::slot::StackBounds;
pub use undescribed::CodeLocation;
use undescribed::Undescribed;
pub use unwind_info::UnwindInfo;

/// Readings of the mappings until all objects are in one.
const MAX_READINGS: usize = 3;
/// How often new unwind tables of JIT code are published, at most.
const JIT_TABLES_INTERVAL: Duration = Duration::from_millis(100);
/// What the kernel calls the memory of a ring of io_uring(7).
const RING: &str = "anon_inode:[io_uring]";

/// Figures for `/status`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TableFigures {
    /// Objects that have a table.
    pub objects: u64,
    /// Their rows.
    pub rows: u64,
    /// Their memory.
    pub bytes: u64,
    /// Time spent on building tables since the start, nanoseconds.
    pub build_ns: u64,
    /// Objects whose table could not be built.
    pub failed: u64,
}

/// The unwind tables of the process's code; belongs to the sampler.
#[derive(Debug)]
pub struct Tables {
    seen: Option<Changes>,
    objects: Vec<Arc<LoadedObject>>,
    /// Set where one of them wants a table.
    any_wanted: Arc<AtomicBool>,
    /// Mapped files with code that the loader does not list; `None`: not an object file.
    files: Vec<(Mapping, Option<Arc<LoadedObject>>)>,
    maps: Vec<Mapping>,
    /// When they were read (CLOCK_MONOTONIC).
    maps_read_ns: u64,
    executable: Vec<Range>,
    current: Arc<Mappings>,
    /// Unwind tables of JIT code that the program registered.
    registered: Registered,
    /// Unwind tables of JIT code that writers found; the generation that is published; and when
    /// that was.
    jit_tables: Arc<JitTables>,
    jit_generation: u64,
    jit_tables_taken: Option<Instant>,
    /// Unwind tables of code that nothing describes.
    undescribed: Undescribed,
    publication: Publication,
    interpreters: Arc<Interpreters>,
    memory_file: i32,
    /// `None` in it: it is not known where the C library keeps them.
    own_stacks: OnceCell<Option<OwnStacks>>,
    figures: TableFigures,
}

impl Tables {
    /// Nothing is known yet; `memory_file` as for [`swipr_unwind::memory::guarded_copy_or_file`].
    pub fn new(memory_file: i32) -> Tables {
        Tables::with(memory_file, Arc::default(), Wanted::default())
    }

    /// The same, with the unwind tables of JIT code that writers find, and with the interpreters
    /// whose frames are read.
    pub fn with(memory_file: i32, jit_tables: Arc<JitTables>, wanted: Wanted) -> Tables {
        let (seen, objects, any_wanted) = match inherited::of_parent() {
            Some((seen, objects, any_wanted)) => (Some(seen), objects, any_wanted),
            None => Default::default(),
        };
        Tables {
            seen,
            objects,
            any_wanted,
            files: vec![],
            maps: vec![],
            maps_read_ns: 0,
            executable: vec![],
            current: Arc::default(),
            registered: Registered::default(),
            jit_tables,
            jit_generation: 0,
            jit_tables_taken: None,
            undescribed: Undescribed::default(),
            publication: Publication::default(),
            interpreters: Arc::new(Interpreters::new(wanted, memory_file)),
            memory_file,
            own_stacks: OnceCell::new(),
            figures: TableFigures::default(),
        }
    }

    /// The view at the time of the last refresh.
    pub fn mappings(&self) -> &Arc<Mappings> {
        &self.current
    }

    /// The interpreters in this process.
    pub fn interpreters(&self) -> &Arc<Interpreters> {
        &self.interpreters
    }

    /// See [`TableFigures`].
    pub fn figures(&self) -> TableFigures {
        self.figures
    }

    /// Finds objects that were loaded or unloaded. Cheap when there are none. If another thread
    /// holds the lock of the loader's list, the next call tries again: until then the last list
    /// holds, or at the beginning the mappings alone.
    pub fn refresh(&mut self) {
        self.publication.free_retired();
        self.interpreters.free_retired();
        let started = Instant::now();
        let has_new_frames =
            self.registered.refresh(self.memory_file) | self.has_new_jit_tables() | self.build_wanted();
        let has_new_frames = has_new_frames | self.undescribed.scan(&self.objects, self.memory_file);
        let changes = objects::changes().filter(|changes| self.seen != Some(*changes));
        let Some((changes, list)) = changes.and_then(|changes| Some((changes, objects::list()?))) else {
            let is_first = self.maps.is_empty() && self.read_maps();
            if has_new_frames || is_first || self.interpreters.may_have_started() {
                self.publish();
                self.figures.build_ns += started.elapsed().as_nanos() as u64;
            }
            return;
        };
        let may_differ = self.seen.is_some_and(|seen| changes.unloads_since(seen));
        let old = std::mem::take(&mut self.objects);
        // If a reading lacks an object's file, the names of that file could not be trusted.
        for _ in 0..MAX_READINGS {
            self.read_maps();
            if list.iter().all(|object| object.code_is_in(&self.maps)) {
                break;
            }
        }
        for object in list {
            let known = old.iter().find(|known| {
                known.is(&object) && (!may_differ || known.is_unchanged(&self.maps, self.memory_file))
            });
            let load =
                || LoadedObject::load(&object, &self.maps, self.memory_file, &self.any_wanted).map(Arc::new);
            self.objects.extend(known.cloned().or_else(load));
        }
        self.objects = sorted_by(&self.objects, |object| object.text().start);
        self.objects.dedup_by(|later, earlier| later.text().start < earlier.text().end);
        self.seen = Some(changes);
        inherited::keep(changes, &self.objects, &self.any_wanted);
        self.publish();
        self.figures.build_ns += started.elapsed().as_nanos() as u64;
    }

    /// Whether nothing describes the code at an address.
    pub fn is_undescribed(&self, address: u64) -> bool {
        // SAFETY: this is the thread that publishes.
        unsafe { published::current() }.is_some_and(|rules| rules.rule(address) == Rule::NONE)
    }

    /// A walk has come to such code of an object: it is scanned at the next refresh.
    pub fn record_undescribed(&self, at: CodeLocation) {
        self.undescribed.record(at);
    }

    /// Whether a table would pay off, or a walk has met code that only a table can say more of.
    pub fn wants_table(&self) -> bool {
        self.any_wanted.load(Relaxed)
    }

    /// Builds the tables that are wanted.
    pub fn build_tables(&mut self) {
        if self.build_wanted() {
            self.publish();
        }
    }

    /// Builds the tables that are wanted. Returns whether there is a new one.
    fn build_wanted(&mut self) -> bool {
        if !self.any_wanted.swap(false, AcqRel) {
            return false;
        }
        let mut has_new = false;
        for object in &mut self.objects {
            if object.unwind_info().is_some_and(|info| info.wants_table()) {
                *object = Arc::new(object.with_table(self.memory_file));
                has_new = true;
            }
        }
        if let Some(seen) = self.seen.filter(|_| has_new) {
            inherited::keep(seen, &self.objects, &self.any_wanted);
        }
        has_new
    }

    /// Whether there are new unwind tables of JIT code. Not at every tick: a compiler at work
    /// always has new ones.
    fn has_new_jit_tables(&mut self) -> bool {
        let generation = self.jit_tables.generation();
        if generation == self.jit_generation
            || self.jit_tables_taken.is_some_and(|last| last.elapsed() < JIT_TABLES_INTERVAL)
        {
            return false;
        }
        (self.jit_generation, self.jit_tables_taken) = (generation, Some(Instant::now()));
        true
    }

    /// Reads the mappings again: stacks and JIT code come and go without the loader's knowledge.
    /// Returns whether executable memory changed.
    pub fn refresh_maps(&mut self) -> bool {
        let changed = self.read_maps();
        if changed {
            self.publish();
        }
        changed
    }

    /// When the mappings were read.
    pub fn maps_read_ns(&self) -> u64 {
        self.maps_read_ns
    }

    /// The writable mapping that holds a stack pointer, as of the last reading.
    pub fn stack_of(&self, sp: u64) -> Option<StackBounds> {
        // The kernel's `[stack]` may have grown since: the first mapping above is the one.
        let above = || self.maps.get(self.maps.partition_point(|mapping| mapping.low <= sp));
        let grown = || above().filter(|mapping| mapping.path == "[stack]");
        let mapping = maps::find(&self.maps, sp).or_else(grown).filter(|mapping| mapping.writable)?;
        let (low, high) = (mapping.low, mapping.high);
        Some(match mapping.path == "[stack]" {
            true => StackBounds::of_first_thread(low, high),
            false => StackBounds::of_mapping(low, high),
        })
    }

    /// The same for a thread that was interrupted there, with its own stack if that is in there.
    pub fn stack_of_thread(&self, sp: u64, tid: u32, thread_pointer: u64) -> Option<StackBounds> {
        let bounds = self.stack_of(sp)?;
        let stacks = self.own_stacks.get_or_init(|| OwnStacks::new(self.memory_file)).as_ref();
        let own = stacks.and_then(|stacks| stacks.of(tid, thread_pointer));
        // A runtime may have a guard of its own at the lower end.
        let own = own.map(|own| own.start.max(bounds.low)..own.end);
        let own = own.filter(|own| own.start < own.end && own.end < bounds.high);
        Some(own.map_or(bounds, |own| StackBounds { own_low: own.start, own_high: own.end, ..bounds }))
    }

    /// Reads the mappings. Returns whether executable memory changed.
    fn read_maps(&mut self) -> bool {
        let Ok(mut maps) = maps::read() else { return false };
        match maps.iter().any(|mapping| mapping.path == RING) {
            true => timer_delivery::has_ring(),
            false => timer_delivery::has_no_ring_mapped(),
        }
        maps::keep_executable(&mut maps, &self.maps);
        let place = |mapping: &Mapping| (mapping.low, mapping.high, mapping.inode);
        let executable = |maps: &[Mapping]| {
            maps.iter().filter(|mapping| mapping.executable).map(place).collect::<Vec<_>>()
        };
        let changed = executable(&maps) != executable(&self.maps);
        self.maps = maps;
        self.maps_read_ns = process::monotonic_ns();
        changed
    }

    /// Publishes the loader's objects and all other executable memory. A reading of the mappings
    /// may lack some, if other threads change them meanwhile. The loader's list is complete.
    fn publish(&mut self) {
        let is_object = |mapping: &Mapping| {
            let mut texts = self.objects.iter().map(|object| object.text());
            texts.any(|text| mapping.low < text.end && text.start < mapping.high)
        };
        let others = self.maps.iter().filter(|mapping| mapping.executable && !is_object(mapping));
        let (files, others): (Vec<_>, Vec<_>) = others.partition(|mapping| mapping.file_path().is_some());
        let known = std::mem::take(&mut self.files);
        let file = |mapping: &Mapping| {
            let known = known.iter().find(|(known, _)| known == mapping).map(|(_, object)| object.clone());
            known.unwrap_or_else(|| LoadedObject::of_mapping(mapping).map(Arc::new))
        };
        self.files = files.into_iter().map(|mapping| (mapping.clone(), file(mapping))).collect();

        let mut objects = self.objects.clone();
        objects.extend(self.files.iter().filter_map(|(_, object)| object.clone()));
        let objects = sorted_by(&objects, |object| object.text().start);
        let not_objects =
            self.files.iter().filter(|(_, object)| object.is_none()).map(|(mapping, _)| mapping);
        let mut code: Vec<Code> = objects.iter().flat_map(of_object).collect();
        let others = others.into_iter().chain(not_objects);
        let others = others.map(|mapping| anonymous(mapping, maps::end_of_code(&self.maps, mapping)));
        code.extend(others.map(|code| self.current.known(&code).cloned().unwrap_or(code)));
        let code = sorted_by(&code, |code| code.low);
        self.executable = code.iter().map(|code| Range { low: code.low, high: code.high }).collect();
        let jit_dumps = self.maps.iter().filter_map(JitDump::of).collect();
        let interpreter = self.interpreters.refresh(self.objects.iter().map(|object| object.source()));
        self.current = Arc::new(Mappings { code, jit_dumps, interpreter });
        let mut infos: Vec<Arc<UnwindInfo>> =
            objects.iter().filter_map(|object| object.unwind_info().cloned()).collect();
        self.figures.failed = (objects.len() - infos.len()) as u64;
        infos.extend(self.registered.outside(&infos));
        infos.extend(self.jit_tables.list());
        let mut infos = sorted_by(&infos, |table| table.text().start);
        infos.dedup_by(|later, earlier| later.text().start < earlier.text().end);
        self.figures.objects = infos.len() as u64;
        let undescribed = self.undescribed.tables(&self.objects);
        let all: Vec<_> = infos.iter().chain(&undescribed).cloned().collect();
        let mut all = sorted_by(&all, |table| table.content_address() as u64);
        all.dedup_by_key(|table| table.content_address());
        self.figures.rows = all.iter().filter_map(|it| it.table()).map(|table| table.rows() as u64).sum();
        self.figures.bytes = all.iter().map(|table| table.bytes() as u64).sum();
        self.publication.publish(infos, undescribed, &self.executable);
    }
}

impl Drop for Tables {
    fn drop(&mut self) {
        inherited::forget();
    }
}

fn of_object(object: &Arc<LoadedObject>) -> Vec<Code> {
    let describe = |range: Range| Code {
        low: range.low,
        high: range.high,
        module: object.module().clone(),
        symbols: Some(object.symbols().clone()),
    };
    object.code().map(describe).collect()
}

/// Executable memory without an object file, up to `high`.
fn anonymous(mapping: &Mapping, high: u64) -> Code {
    let has_file = mapping.path.starts_with('/') && !mapping.path.starts_with("/memfd:");
    let path = match mapping.path.as_str() {
        "" => "[jit]",
        "[vsyscall]" => "[vsyscall]",
        path if has_file => path.strip_suffix(" (deleted)").unwrap_or(path),
        _ => "[jit]",
    };
    let module = Arc::new(Module {
        path: path.into(),
        start: mapping.low,
        end: high,
        file_offset: mapping.offset,
        base: mapping.low.wrapping_sub(mapping.offset),
        build_id: vec![],
    });
    Code { low: mapping.low, high, module, symbols: None }
}

#[cfg(test)]
mod tests;
