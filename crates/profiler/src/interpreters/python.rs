//! Finds a CPython in a loaded object, and what is read of it.

use super::exported::Exported;
use super::found::{FoundRuntime, NotRead};
use std::ops::Range;
use swipr_runtimes::merge::RuntimeCode;
use swipr_runtimes::python::{Layout, Row};
use swipr_runtimes::runtime::Runtime;

/// What the object exports if it has a CPython.
pub const RUNTIME: &str = "_PyRuntime";

/// What is read of the one whose `_PyRuntime` is at `runtime`; or why it is not read.
pub fn find(exported: &Exported, runtime: u64, object: Range<u64>) -> Result<FoundRuntime, NotRead> {
    let older = || NotRead("CPython before 3.11: shown as the interpreter's functions".to_owned());
    let at = exported.find("Py_Version").ok_or_else(older)?;
    let hex = u64::from_ne_bytes(exported.copy(at.start).ok_or_else(older)?);
    let (major, minor, micro) = (hex >> 24 & 0xff, hex >> 16 & 0xff, hex >> 8 & 0xff);
    let name = format!("CPython {major}.{minor}.{micro}");
    let row = Row::of_version(minor as u8, |bytes| exported.copy_into(runtime, bytes));
    let row = row.filter(|_| major == 3).ok_or_else(|| NotRead::unknown_version(&name))?;
    let find = |symbol: &str| exported.find(symbol).ok_or_else(|| NotRead::hidden(&name));
    let evaluator = find("_PyEval_EvalFrameDefault")?;
    let layout = Layout {
        row,
        runtime,
        code_type: find("PyCode_Type")?.start,
        text_type: find("PyUnicode_Type")?.start,
        bytes_type: find("PyBytes_Type")?.start,
    };
    let code = RuntimeCode { evaluator, object, ..RuntimeCode::default() };
    Ok(FoundRuntime { runtime: Runtime::Python(layout), code, name })
}
