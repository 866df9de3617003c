//! Finds a PHP in a loaded object, and what is read of it.

use super::cold_part;
use super::exported::Exported;
use super::found::{FoundRuntime, NotRead};
use std::ops::Range;
use swipr_os::objects::Object;
use swipr_os::process;
use swipr_runtimes::merge::{RuntimeCode, RuntimeLanguage};
use swipr_runtimes::php::{PhpLayout, PhpRow, ROWS};
use swipr_runtimes::runtime::Runtime;

/// What the object exports if it has a PHP: the function that runs its frames.
pub const RUN_LOOP: &str = "execute_ex";
/// Numbers of the module interface are days.
const API_NUMBERS: Range<u32> = 20_190_101..21_000_101;

/// What is read of the one with that run loop; or why it is not read.
pub fn find(
    exported: &Exported,
    evaluator: Range<u64>,
    object: &Object,
    text: Range<u64>,
) -> Result<FoundRuntime, NotRead> {
    let (api, is_thread_safe) = module_interface(exported).ok_or(NotRead::NotYet)?;
    let row = ROWS.iter().find(|row| row.api == api).copied();
    let row = row.ok_or_else(|| NotRead::unknown_version(&format!("PHP (modules of {api})")))?;
    let name = format!("PHP {}.{}", row.major, row.minor);
    let globals = exported.find("executor_globals").filter(|_| !is_thread_safe);
    let globals = globals.ok_or_else(|| NotRead::because(&name, "it is built with threads"))?;
    let cold_part = cold_part::of(exported, object, &evaluator);
    let language = RuntimeLanguage::Php;
    let code = RuntimeCode { evaluator, cold_part, object: text, language, ..RuntimeCode::default() };
    let runtime = Runtime::Php(PhpLayout { row, globals: globals.start, tid: process::pid() });
    Ok(FoundRuntime { runtime, code, name })
}

/// What the first module was built for: the number of the interface, and whether for threads.
/// `None`: there is no module yet.
fn module_interface(exported: &Exported) -> Option<(u32, bool)> {
    // All versions have these at the same places.
    let PhpRow { table_elements, module_api, module_is_thread_safe, .. } = *ROWS.first()?;
    let word = |at: u64| exported.copy(at).map(u64::from_ne_bytes);
    let modules = word(exported.find("module_registry")?.start + u64::from(table_elements))?;
    let module = word(modules)?;
    let api = u32::from_ne_bytes(exported.copy(module.checked_add(module_api.into())?)?);
    let [is_thread_safe] = exported.copy(module.checked_add(module_is_thread_safe.into())?)?;
    API_NUMBERS.contains(&api).then_some((api, is_thread_safe != 0))
}
