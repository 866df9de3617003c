//! Checks that the threads which a recording selects exist. If none does, the recording is refused
//! before it begins, and the answer lists the threads. Where an interpreter may give them names,
//! only the sampler knows these: the recording begins. Not here: the filter of a running recording
//! (`sampler/sweep/filter.rs`).

use crate::interpreters;
use swipr_os::own_threads;
use swipr_os::threads::{TaskDirectory, name};
use swipr_server::recording::{Request, WriterTask};

/// Names of threads that an error lists.
const MAX_NAMES: usize = 20;

/// The error says what is wrong. Nothing is checked if the request says that threads may come
/// later.
pub fn check(request: &Request) -> Result<(), String> {
    let (names, tids) = (&request.threads, &request.filter.tids);
    let is_of_now = !request.filter.may_come && !matches!(request.purpose, WriterTask::Last(_));
    if !is_of_now || (names.is_none() && tids.is_empty()) {
        return Ok(());
    }
    let mut all = vec![];
    if TaskDirectory::open().and_then(|directory| directory.list(&mut all)).is_err() {
        return Ok(()); // the sampler cannot sample then, and says so
    }
    if let Some(unknown) = tids.iter().find(|tid| !all.contains(tid)) {
        return Err(format!("there is no thread {unknown} in this process"));
    }
    if let Some(own) = tids.iter().find(|&&tid| own_threads::contains(tid)) {
        return Err(format!("thread {own} is one of swipr's own, which are not sampled"));
    }
    let Some(regex) = names else { return Ok(()) };
    all.retain(|tid| !own_threads::contains(*tid) && (tids.is_empty() || tids.contains(tid)));
    let found: Vec<String> = all.iter().map(|&tid| name(tid)).collect();
    if found.iter().any(|name| regex.is_match(name)) || interpreters::may_name_threads() {
        return Ok(());
    }
    let mut names: Vec<String> = vec![];
    for name in found {
        if let Err(at) = names.binary_search(&name) {
            names.insert(at, name);
        }
    }
    let more = names.len().saturating_sub(MAX_NAMES);
    names.truncate(MAX_NAMES);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    Err(format!("no thread's name matches \"{regex}\"; there are {}{more}", names.join(", ")))
}
