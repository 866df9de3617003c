//! Finds a PHP in a loaded object, and what is read of it.

use super::code_references::variables;
use super::cold_part;
use super::exported::Exported;
use super::found::{FoundRuntime, NotRead};
use super::thread_states::StateList;
use crate::thread_data;
use std::ops::Range;
use swipr_os::objects::Object;
use swipr_os::process;
use swipr_runtimes::merge::{RuntimeCode, RuntimeLanguage};
use swipr_runtimes::php::{PhpGlobals, PhpLayout, PhpRow, PhpThreads, ROWS};
use swipr_runtimes::runtime::Runtime;

/// What the object exports if it has a PHP: the function that runs its frames.
pub const RUN_LOOP: &str = "execute_ex";
/// What frees objects, those that only lead to each other, and resources: a function that C code
/// called has no frame any more when its variables are freed.
const FREEING: [&str; 3] = ["zend_objects_store_del", "zend_gc_collect_cycles", "zend_hash_index_del"];
/// What calls a function of PHP from C code.
const CALLING: &str = "zend_call_function";
/// Keys of pthread_getspecific(3) whose values the control block itself has.
const KEYS: u32 = 32;
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
    let globals = match is_thread_safe {
        true => threads(exported).map(PhpGlobals::OfThreads),
        false => exported.find("executor_globals").map(|at| PhpGlobals::OfProcess(at.start, process::pid())),
    };
    let globals = globals.ok_or_else(|| NotRead::hidden(&name))?;
    let cold_part = cold_part::of(exported, object, &evaluator);
    let language = RuntimeLanguage::Php;
    let freeing = FREEING.map(|name| exported.find(name).unwrap_or_default());
    let calling = exported.find(CALLING).unwrap_or_default();
    let code = RuntimeCode {
        evaluator,
        cold_part,
        object: text,
        language,
        freeing,
        calling,
        ..RuntimeCode::default()
    };
    let pass_function = exported.find("zend_pass_function").map_or(0, |at| at.start);
    let runtime = Runtime::Php(PhpLayout { row, globals, pass_function });
    Ok(FoundRuntime { runtime, code, name })
}

/// Where a PHP with threads has what each of them runs: whatever the functions refer to that leads
/// to storages whose threads have them. `None`: not known.
fn threads(exported: &Exported) -> Option<PhpThreads> {
    if cfg!(not(target_arch = "x86_64")) {
        // What the C library calls a thread by is not where its values are counted from.
        return None;
    }
    let referred = |name| exported.find(name).map_or(vec![], |code| variables(exported, &code));
    let word = |at| exported.copy(at).map(u64::from_ne_bytes);
    let globals = word(exported.find("executor_globals_offset")?.start)?;
    let of_first_key = thread_data::of_first_key()?;
    let tid_in_block = thread_data::of_tid();
    let keys = referred("tsrm_get_ls_cache").into_iter();
    let keys = keys.filter_map(|at| exported.copy(at).map(u32::from_ne_bytes)).filter(|key| *key < KEYS);
    let mut layouts = keys.flat_map(|key| {
        let storage = of_first_key + 16 * u64::from(key);
        let tables = referred("ts_free_thread").into_iter();
        tables.map(move |table| PhpThreads { table, storage, globals, tid_in_block })
    });
    layouts.find(|layout| !layout.states(exported.memory_file()).is_empty())
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
