//! Finds a Perl in a loaded object, and what is read of it.

use super::exported::Exported;
use super::found::{FoundRuntime, NotRead};
use crate::thread_data;
use std::ops::Range;
use swipr_runtimes::merge::{RuntimeCode, RuntimeLanguage};
use swipr_runtimes::perl::{Ops, PerlLayout, PerlRow, ROWS, Threads};
use swipr_runtimes::runtime::Runtime;

/// What the object exports if it has a Perl: the function that runs ops.
pub const RUN_LOOP: &str = "Perl_runops_standard";
/// What it exports if it has threads.
const THREAD_KEY: &str = "PL_thr_key";
/// An interpreter, once there is one.
const CURRENT: &str = "PL_curinterp";
/// Contexts are gone while what they have left is freed: after an error, and before 5.24 after
/// each sub.
const FREEING: [&str; 3] = ["Perl_leave_scope", "Perl_dounwind", "Perl_my_exit"];
/// More ops than any version has.
const MAX_OPS: u64 = 1024;

/// What is read of the one with that run loop; or why it is not read.
pub fn find(exported: &Exported, evaluator: Range<u64>, object: Range<u64>) -> Result<FoundRuntime, NotRead> {
    let number = |symbol: &str| Some(exported.copy::<1>(exported.find(symbol)?.start)?[0]);
    let versions = ["PL_revision", "PL_version", "PL_subversion"].map(number);
    let [Some(5), Some(version), Some(subversion)] = versions else {
        return Err(NotRead::hidden("Perl"));
    };
    let name = format!("Perl 5.{version}.{subversion}");
    let current = exported.find(CURRENT).ok_or_else(|| NotRead::hidden(&name))?.start;
    // Other programs' libraries bring it along, too, and do not start it.
    if exported.copy::<8>(current).is_none_or(|interpreter| interpreter == [0; 8]) {
        return Err(NotRead::NotYet);
    }
    let row = row_of(exported, version).ok_or_else(|| NotRead::unknown_version(&name))?;
    let find = |symbol: &str| Ok(exported.find(symbol).ok_or_else(|| NotRead::hidden(&name))?.start);
    let (variables, compiling, threads) = match exported.find(THREAD_KEY) {
        None => {
            let returns = row.returns.map_or(Ok(0), |_| find("PL_retstack"))?;
            let variables = [find("PL_op")?, find("PL_curcop")?, find("PL_curstackinfo")?, returns];
            (variables, find("PL_compiling")?, None)
        }
        Some(key) => {
            let not_known = || NotRead::because(&name, "the C library's thread data is not known");
            let of_first_key = thread_data::of_first_key().ok_or_else(not_known)?;
            let threads = Threads { key: key.start, of_first_key, current };
            let returns = row.returns.map_or(0, |returns| returns.stack);
            let variables = [row.op, row.line, row.stack_info, returns].map(u64::from);
            (variables, row.compiling.into(), Some(threads))
        }
    };
    let program = std::fs::read_link("/proc/self/exe").unwrap_or_default();
    let is_program = program.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"perl"));
    let layout = PerlLayout {
        row,
        variables,
        compiling,
        threads,
        entering: exported.find("Perl_pp_entersub").map_or((0, 0), |code| (code.start, code.end)),
        object: (object.start, object.end),
        ops: ops(find("PL_op_name")?, exported).ok_or_else(|| NotRead::unknown_version(&name))?,
        is_program,
    };
    let code = RuntimeCode {
        evaluator,
        object,
        language: RuntimeLanguage::Perl,
        root: exported.find("perl_run").unwrap_or_default(),
        shown: exported.find("Perl_pp_sort").unwrap_or_default(),
        freeing: FREEING.map(|name| exported.find(name).unwrap_or_default()),
        ..RuntimeCode::default()
    };
    Ok(FoundRuntime { runtime: Runtime::Perl(layout), code, name })
}

/// Where this version and build has what is read.
fn row_of(exported: &Exported, version: u8) -> Option<PerlRow> {
    // Without threads there is no such structure.
    let size = exported.find("PL_interp_size").and_then(|at| exported.copy(at.start));
    let size = size.map_or(0, u16::from_ne_bytes);
    let has_threads = exported.find(THREAD_KEY).is_some();
    let is_it = |row: &&PerlRow| match row.returns {
        // Before 5.10 its size is not said, and builds without threads have a row of their own.
        Some(_) => (row.interpreter_bytes > 0) == has_threads,
        None => size == 0 || row.interpreter_bytes == size,
    };
    ROWS.iter().filter(|row| row.version == u16::from(version)).find(is_it).copied()
}

/// The numbers of ops.
fn ops(names: u64, exported: &Exported) -> Option<Ops> {
    let op = |op: &str| number_of(op.as_bytes(), names, exported);
    Some(Ops {
        enter_sub: op("entersub")?,
        lines: [op("nextstate")?, op("dbstate")?],
        evals: [op("entertry")?, op("entereval")?, op("require")?],
        returns: [op("leavesub")?, op("leavesublv")?, op("return")?],
    })
}

/// The number of an op, by the array of their names.
fn number_of(op: &[u8], names: u64, exported: &Exported) -> Option<u32> {
    for number in 0..MAX_OPS {
        let name = u64::from_ne_bytes(exported.copy(names + 8 * number)?);
        let mut text = [0; 16];
        exported.copy_into(name, text.get_mut(..op.len() + 1)?)?;
        if text.get(..op.len()) == Some(op) && text.get(op.len()) == Some(&0) {
            return u32::try_from(number).ok();
        }
    }
    None
}
