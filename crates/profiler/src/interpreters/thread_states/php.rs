//! PHP's list: a table of the storages of threads, each with a list of those with the same place.

use super::{MAX_STATES, StateEntry, StateList, word};
use swipr_runtimes::php::PhpThreads;

/// Places of the table that are looked at. It may have fewer: what is behind it is no storage.
const MAX_PLACES: u64 = 256;

impl StateList for PhpThreads {
    fn states(&self, memory_file: i32) -> Vec<StateEntry> {
        let read = |at| word(at, memory_file);
        let table = read(self.table).unwrap_or(0);
        let places = (0..MAX_PLACES).filter_map(|place| read(table.wrapping_add(8 * place)));
        let storages = places.flat_map(|first| {
            let storages = std::iter::successors(Some(first), |storage| PhpThreads::next(*storage, read));
            let owned = storages.map(|storage| (storage, self.owner_of(storage, read)));
            owned.map_while(|(storage, owner)| Some((storage, owner?))).take(MAX_STATES)
        });
        let entry =
            |(state, (ident, tid)): (u64, (u64, u32))| StateEntry { state, ident, native: tid.into() };
        storages.take(MAX_STATES).map(entry).collect()
    }
}
