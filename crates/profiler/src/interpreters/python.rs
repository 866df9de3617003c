//! Finds a CPython in a loaded object, and what is read of it.

use super::cold_part;
use super::exported::Exported;
use super::found::{FoundRuntime, NotRead};
use super::thread_data;
use std::ops::Range;
use swipr_os::objects::Object;
use swipr_runtimes::merge::RuntimeCode;
use swipr_runtimes::python::{Layout, Row};
use swipr_runtimes::runtime::Runtime;

/// What the object exports if it has a CPython.
pub const RUNTIME: &str = "_PyRuntime";

/// Functions that came with a minor version before 3.11, and stay (PEP 652).
const CAME_WITH: [(&str, u8); 3] =
    [("PyModule_AddObjectRef", 10), ("PyObject_CallNoArgs", 9), ("PyCode_NewWithPosOnlyArgs", 8)];

/// The minor version, and what it is called. Before 3.11 no variable has it, and the function that
/// says it is the program's: it is not called.
fn version(exported: &Exported) -> Option<(u8, String)> {
    let Some(at) = exported.find("Py_Version") else {
        let came_with = |(function, _): &&(&str, u8)| exported.find(function).is_some();
        let (_, minor) = CAME_WITH.iter().find(came_with)?;
        return Some((*minor, format!("CPython 3.{minor}")));
    };
    let hex = u64::from_ne_bytes(exported.copy(at.start)?);
    let (major, minor, micro) = (hex >> 24 & 0xff, hex >> 16 & 0xff, hex >> 8 & 0xff);
    (major == 3).then(|| (minor as u8, format!("CPython 3.{minor}.{micro}")))
}

/// What is read of the one whose `_PyRuntime` is at `runtime`; or why it is not read.
pub fn find(
    exported: &Exported,
    runtime: u64,
    object: &Object,
    text: Range<u64>,
) -> Result<FoundRuntime, NotRead> {
    let (minor, name) = version(exported).ok_or_else(|| NotRead::unknown_version("CPython"))?;
    let row = Row::of_version(minor, |bytes| exported.copy_into(runtime, bytes));
    let row = row.ok_or_else(|| NotRead::unknown_version(&name))?;
    let find = |symbol: &str| exported.find(symbol).ok_or_else(|| NotRead::hidden(&name));
    let evaluator = find("_PyEval_EvalFrameDefault")?;
    let layout = Layout {
        row,
        runtime,
        code_type: find("PyCode_Type")?.start,
        text_type: find("PyUnicode_Type")?.start,
        bytes_type: find("PyBytes_Type")?.start,
        tid_in_block: row.thread_native.map_or_else(thread_data::of_tid, |_| None),
    };
    let cold_part = cold_part::of(exported, object, &evaluator);
    let code = RuntimeCode { evaluator, cold_part, object: text, ..RuntimeCode::default() };
    Ok(FoundRuntime { runtime: Runtime::Python(layout), code, name })
}
