//! The modules of a recording as symbol servers know them, and the functions in them: for a viewer
//! that has the recording.

use crate::names::{Place, place_of, symbolizer};
use crate::search::SearchPath;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use swipr_formats::debug_id;
use swipr_formats::model::Module;
use swipr_symbols::symbol_api;
use swipr_symbols::symbolizer::{Budget, Lookup, Symbol, Symbolizer};

/// See the module's text.
pub struct Modules {
    search: SearchPath,
    /// By the name of the file and Breakpad's id. A file may be mapped in several pieces.
    pieces: HashMap<(String, String), Vec<Arc<Module>>>,
    found: Mutex<Found>,
}

/// What was looked for, and the files' names.
struct Found {
    places: HashMap<Arc<Module>, Option<Place>>,
    symbolizer: Symbolizer,
}

impl Modules {
    /// Those of a recording.
    pub fn new(modules: &HashSet<Arc<Module>>, search: SearchPath, budget: Budget) -> Modules {
        let mut pieces: HashMap<_, Vec<_>> = HashMap::new();
        for module in modules {
            let path = module.path.strip_suffix(" (deleted)").unwrap_or(&module.path);
            let name = path.rsplit('/').next().unwrap_or_default().to_owned();
            pieces.entry((name, debug_id(&module.build_id))).or_default().push(module.clone());
        }
        let found = Found { places: HashMap::new(), symbolizer: symbolizer(&search, budget) };
        Modules { search, pieces, found: Mutex::new(found) }
    }

    fn pieces(&self, name: &str, debug_id: &str) -> &[Arc<Module>] {
        let key = (name.to_owned(), debug_id.to_uppercase());
        self.pieces.get(&key).map_or(&[], Vec::as_slice)
    }
}

impl symbol_api::Modules for Modules {
    fn has(&self, name: &str, debug_id: &str) -> bool {
        !self.pieces(name, debug_id).is_empty()
    }

    fn functions(&self, name: &str, debug_id: &str, offset: u64) -> Option<Arc<[Symbol]>> {
        let mut pieces = self.pieces(name, debug_id).iter();
        let (module, address) = pieces.find_map(|module| {
            let address = module.base.wrapping_add(offset);
            (module.start..module.end).contains(&address).then_some((module, address))
        })?;
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        let Found { places, symbolizer } = &mut *found;
        let place = places.entry(module.clone()).or_insert_with(|| place_of(module, &self.search, None));
        let (key, bias) = place.as_ref()?;
        Some(symbolizer.resolve(key, address.wrapping_sub(*bias), Lookup::Pc))
    }
}
