//! Finds a CPython in a loaded object, and what is read of it.

use super::code_references::variables;
use super::cold_part;
use super::exported::Exported;
use super::found::{FoundRuntime, NotRead};
use crate::thread_data;
use std::ops::Range;
use swipr_os::objects::Object;
use swipr_runtimes::merge::RuntimeCode;
use swipr_runtimes::python::{Layout, Row};
use swipr_runtimes::runtime::Runtime;

/// What the object exports if it has a CPython: the function that says the first interpreter.
pub const HEAD: &str = "PyInterpreterState_Head";
/// The variable that leads to the interpreters, from 3.7 on.
const RUNTIME: &str = "_PyRuntime";

/// Smaller functions run no instructions themselves.
const EVALUATOR_BYTES: u64 = 8 << 10;

/// Functions that came with a minor version before 3.11, and stay (PEP 652).
const CAME_WITH: [(&str, u8); 5] = [
    ("PyModule_AddObjectRef", 10),
    ("PyObject_CallNoArgs", 9),
    ("PyCode_NewWithPosOnlyArgs", 8),
    ("PyThread_tss_create", 7),
    ("PyOS_FSPath", 6),
];

/// The minor version, and what it is called; `None`: it is older. Before 3.11 no variable has it,
/// and the function that says it is the program's: it is not called.
fn version(exported: &Exported) -> Option<(u8, String)> {
    let Some(at) = exported.find("Py_Version") else {
        let came_with = |(function, _): &&(&str, u8)| exported.find(function).is_some();
        let (_, minor) = CAME_WITH.iter().find(came_with)?;
        return Some((*minor, format!("CPython 3.{minor}")));
    };
    let hex = u64::from_ne_bytes(exported.copy(at.start)?);
    let (major, minor, micro) = (hex >> 24 & 0xff, hex >> 16 & 0xff, hex >> 8 & 0xff);
    // No row is of 3.0.
    let known = if major == 3 { minor as u8 } else { 0 };
    Some((known, format!("CPython {major}.{minor}.{micro}")))
}

/// What [`Layout::runtime`] is where it has no exported name, as before 3.7: the function `code`
/// reads the first interpreter's address there. An interpreter's threads lead back to it.
fn runtime_by_code(exported: &Exported, code: &Range<u64>, row: &Row) -> Option<u64> {
    let word = |at: u64| exported.copy(at).map(u64::from_ne_bytes).filter(|&word| word != 0);
    let leads_back = |variable: &u64| {
        let interpreter = word(*variable)?;
        let state = word(interpreter.checked_add(row.interpreter_threads)?)?;
        // A thread's state begins with such addresses, the frame behind them.
        let mut places = (state..state.checked_add(row.thread_frame)?).step_by(8);
        places.find(|&at| word(at) == Some(interpreter))
    };
    let found = variables(exported, code).into_iter().find(|variable| leads_back(variable).is_some());
    found?.checked_sub(row.interpreters)
}

/// What is read of the one whose [`HEAD`] is `head`; or why it is not read.
pub fn find(
    exported: &Exported,
    head: &Range<u64>,
    object: &Object,
    text: Range<u64>,
) -> Result<FoundRuntime, NotRead> {
    let (minor, name) = version(exported).ok_or_else(|| NotRead::unknown_version("CPython before 3.6"))?;
    let runtime = exported.find(RUNTIME).map(|found| found.start);
    let row = Row::of_version(minor, |bytes| exported.copy_into(runtime?, bytes));
    let row = row.ok_or_else(|| NotRead::unknown_version(&name))?;
    let find = |symbol: &str| exported.find(symbol).ok_or_else(|| NotRead::hidden(&name));
    let evaluator = find("_PyEval_EvalFrameDefault")?;
    let cold_part = cold_part::of(exported, object, &evaluator);
    let layout = Layout {
        row,
        runtime: runtime.or_else(|| runtime_by_code(exported, head, &row)).ok_or(NotRead::NotYet)?,
        code_type: find("PyCode_Type")?.start,
        text_type: find("PyUnicode_Type")?.start,
        bytes_type: find("PyBytes_Type")?.start,
        evaluator: [&evaluator, &cold_part].map(|part| (part.start, part.end)),
        tid_in_block: row.thread_native.map_or_else(thread_data::of_tid, |_| None),
    };
    // Where each instruction has a function of its own (`--with-tail-call-interp`), the evaluator
    // calls nothing else.
    let has_tail_calls = evaluator.end - evaluator.start < EVALUATOR_BYTES;
    let inner = if has_tail_calls { [text.clone(), 0..0] } else { [0..0, 0..0] };
    let code = RuntimeCode { evaluator, cold_part, inner, object: text, ..RuntimeCode::default() };
    Ok(FoundRuntime { runtime: Runtime::Python(layout), code, name })
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;
    use swipr_os::{objects, process};
    use swipr_runtimes::python::ROWS;

    const VARIABLE: usize = 1;
    const INTERPRETER: usize = 2;
    const STATE: usize = 32;

    /// Where the variable was found, in words; in memory that is right but for this word.
    fn found(wrong: Option<(usize, u64)>) -> Option<u64> {
        let row = ROWS.iter().find(|row| row.minor == 6).unwrap();
        let mut words = vec![0u64; 64];
        let start = words.as_ptr() as u64;
        // mov 1(%rip),%rax; ret
        words[0] = u64::from_le_bytes([0x48, 0x8b, 0x05, 1, 0, 0, 0, 0xc3]);
        words[VARIABLE] = start + 8 * INTERPRETER as u64;
        words[INTERPRETER + row.interpreter_threads as usize / 8] = start + 8 * STATE as u64;
        words[STATE + row.thread_frame as usize / 8 - 1] = words[VARIABLE];
        if let Some((at, word)) = wrong {
            words[at] = word;
        }
        swipr_unwind::memory::set_process(process::pid() as i32);
        let list = objects::list().unwrap();
        let exported = list.iter().find_map(|object| Exported::of(object, -1)).unwrap();
        let found = runtime_by_code(&exported, &(start..start + 8), row);
        found.map(|at| (at - words.as_ptr() as u64) / 8)
    }

    #[test]
    fn a_variable_that_a_function_reads_is_believed_if_its_threads_lead_back() {
        assert_eq!(found(None), Some(VARIABLE as u64));
        let not_started = (VARIABLE, 0);
        let another = (VARIABLE, 4096);
        let no_thread = (INTERPRETER + 1, 0);
        let thread_of_another = (STATE + 2, 4096);
        for wrong in [not_started, another, no_thread, thread_of_another] {
            assert_eq!(found(Some(wrong)), None, "{wrong:?}");
        }
    }
}
