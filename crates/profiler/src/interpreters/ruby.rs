//! Finds a Ruby in a loaded object, and what is read of it. From 3.3 on it exports neither its run
//! loop nor its variables: exported functions refer to them.

mod context;
mod names;

use super::code_references::{calls, variables};
use super::cold_part;
use super::exported::Exported;
use super::found::{FoundRuntime, NotRead};
use crate::thread_data;
use std::ops::Range;
use swipr_os::objects::Object;
use swipr_runtimes::merge::{RuntimeCode, RuntimeLanguage};
use swipr_runtimes::ruby::{CurrentContext, ROWS, RubyLayout, RubyRow};
use swipr_runtimes::runtime::Runtime;

/// What the object exports if it has a Ruby: three numbers, its version.
pub const VERSION: &str = "ruby_api_version";
/// Smaller functions run no code of Ruby.
const RUN_LOOP_BYTES: u64 = 8 << 10;

/// What is read of the one in that object; or why it is not read. `None`: it is none.
pub fn find(exported: &Exported, object: &Object, text: Range<u64>) -> Option<Result<FoundRuntime, NotRead>> {
    let version: [u8; 12] = exported.copy(exported.find(VERSION)?.start)?;
    let mut numbers = version.as_chunks::<4>().0.iter().map(|number| u32::from_ne_bytes(*number));
    let (major, minor) = (numbers.next()?, numbers.next()?);
    Some(of_version((major, minor), exported, object, text))
}

fn of_version(
    (major, minor): (u32, u32),
    exported: &Exported,
    object: &Object,
    text: Range<u64>,
) -> Result<FoundRuntime, NotRead> {
    let name = format!("Ruby {major}.{minor}");
    let row = ROWS.iter().find(|row| (u32::from(row.major), u32::from(row.minor)) == (major, minor));
    let row = row.ok_or_else(|| NotRead::unknown_version(&name))?;
    let hidden = || NotRead::hidden(&name);
    let functions = ObjectCode { starts: cold_part::starts(exported, object).ok_or_else(hidden)?, exported };
    let (evaluator, inner) = functions.run_loop().ok_or_else(hidden)?;
    let machine = functions.machine(row).ok_or(NotRead::NotYet)?;
    let names = functions.names(row).ok_or(NotRead::NotYet)?;
    let mut layout = RubyLayout {
        row,
        machine,
        current: CurrentContext::Unknown,
        names,
        id_class_path: 0,
        object: (text.start, text.end),
        inner: (inner.start, inner.end),
        tid_in_block: None,
    };
    if row.class_path == 0 {
        let id = names::id_of(b"__classpath__", exported, &layout);
        layout.id_class_path = id.ok_or(NotRead::NotYet)?;
    }
    if row.native_tid == 0 {
        layout.tid_in_block = thread_data::of_tid();
    }
    layout.current = match exported.find("ruby_current_execution_context_ptr") {
        Some(variable) => CurrentContext::Global(variable.start),
        None => context::of_thread(exported, &layout),
    };
    let part_of = |code: &Range<u64>| cold_part::of(exported, object, code);
    let code = RuntimeCode {
        cold_part: part_of(&evaluator),
        inner: [inner.clone(), part_of(&inner)],
        evaluator,
        object: text,
        language: RuntimeLanguage::Ruby,
        ..RuntimeCode::default()
    };
    Ok(FoundRuntime { runtime: Runtime::Ruby(layout), code, name })
}

/// The object's functions.
struct ObjectCode<'e> {
    starts: Vec<u64>,
    exported: &'e Exported,
}

impl ObjectCode<'_> {
    /// The function that begins at `start`.
    fn at(&self, start: u64) -> Option<Range<u64>> {
        let at = self.starts.binary_search(&start).ok()?;
        Some(start..*self.starts.get(at + 1)?)
    }

    fn exported(&self, name: &str) -> Option<Range<u64>> {
        self.exported.find(name).map(|code| self.at(code.start).unwrap_or(code))
    }

    fn calls(&self, code: &Range<u64>) -> Vec<Range<u64>> {
        calls(self.exported, code).into_iter().filter_map(|start| self.at(start)).collect()
    }

    /// The largest function that it calls.
    fn largest_call(&self, code: &Range<u64>) -> Option<Range<u64>> {
        let called = self.calls(code).into_iter().filter(|called| called.start != code.start);
        called.max_by_key(|called| called.end - called.start)
    }

    /// `rb_vm_exec`, and `vm_exec_core`, which it calls: empty, if it is part of that.
    fn run_loop(&self) -> Option<(Range<u64>, Range<u64>)> {
        let size = |code: &Range<u64>| code.end - code.start;
        let inner = |code: &Range<u64>| {
            let inner = self.largest_call(code).filter(|inner| size(inner) >= RUN_LOOP_BYTES);
            inner.or_else(|| (size(code) >= RUN_LOOP_BYTES).then_some(0..0))
        };
        if let Some(code) = self.exported("rb_vm_exec") {
            return Some((code.clone(), inner(&code)?));
        }
        // Both run the code of a file.
        let of_main = self.calls(&self.exported("rb_iseq_eval_main")?);
        let of_both = self.calls(&self.exported("rb_iseq_eval")?).into_iter();
        let of_both = of_both.filter(|code| of_main.contains(code));
        let found = of_both.filter_map(|code| Some((inner(&code)?, code)));
        let (inner, code) = found.max_by_key(|(inner, code)| size(inner).max(size(code)))?;
        Some((code, inner))
    }

    fn word(&self, at: u64) -> Option<u64> {
        self.exported.copy(at).map(u64::from_ne_bytes)
    }

    /// Where the address of the virtual machine is.
    fn machine(&self, row: &RubyRow) -> Option<u64> {
        let exported = self.exported.find("ruby_current_vm_ptr").map(|found| found.start);
        let reader = self.exported("rb_during_gc");
        let referred = reader.map_or(vec![], |code| variables(self.exported, &code));
        let is_one = |at: &u64| {
            // The ring of ractors, or of threads, leads back to itself.
            let list = match row.machine_ractors {
                0 => row.ractor_threads,
                at => at,
            };
            let head = self.word(*at)?.checked_add(list.into())?;
            let first = self.word(head)?;
            (first != head && self.word(first.checked_add(8)?)? == head).then_some(())
        };
        exported.into_iter().chain(referred).find(|at| is_one(at).is_some())
    }

    /// Where the list of names is: the operator `+` is in it at its place.
    fn names(&self, row: &RubyRow) -> Option<u64> {
        let code = self.exported("rb_sym_all_symbols")?;
        let referred = variables(self.exported, &code).into_iter();
        let places = referred.flat_map(|at| [at, at.wrapping_add(8), at.wrapping_add(16)]);
        let mut places = places.filter(|at| at.is_multiple_of(8));
        places.find(|&names| names::are_at(names, self.exported, row))
    }
}
