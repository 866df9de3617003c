//! What was sampled lately, as addresses, and where their names are found should anybody ask for
//! them. Until somebody does, nothing is read of any file.

use crate::mappings::Symbols;
use rustc_hash::FxHashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use swipr_formats::FlightRecorder;
use swipr_formats::model::{Header, Module};
use swipr_symbols::symbolizer::Symbolizer;

/// What was read of files goes when nobody has asked for names for so long.
const UNUSED: Duration = Duration::from_secs(60);

/// Where the names of modules are found.
pub type Places = FxHashMap<Arc<Module>, Arc<Symbols>>;

/// `None`: nothing is kept.
pub type Kept = Arc<Mutex<Option<AddressRecorder>>>;

/// See the module's text.
#[derive(Debug)]
pub struct AddressRecorder {
    /// The samples.
    pub recorder: FlightRecorder,
    /// Of the modules that they are in.
    pub places: Places,
}

impl AddressRecorder {
    /// Keeps so much time of a recording.
    pub fn new(header: Header, keep: Duration) -> AddressRecorder {
        AddressRecorder {
            recorder: FlightRecorder::new(header, keep.as_nanos() as u64),
            places: Places::default(),
        }
    }

    /// Stacks came with frames in these modules. Others that are unloaded and in no stack any more
    /// are forgotten.
    pub fn met(&mut self, modules: Vec<(Arc<Module>, Arc<Symbols>)>) {
        self.places.retain(|module, _| Arc::strong_count(module) > 1);
        self.places.extend(modules);
    }
}

/// Sees to it that what was read for names does not stay for as long as samples are kept, which is
/// for ever.
#[derive(Debug)]
pub struct UnusedSymbols {
    look_ups: u64,
    since: Instant,
}

impl UnusedSymbols {
    /// From now on.
    pub fn new() -> UnusedSymbols {
        UnusedSymbols { look_ups: 0, since: Instant::now() }
    }

    /// To be called now and then.
    pub fn look(&mut self, symbolizer: &Mutex<Symbolizer>) {
        let Ok(mut symbolizer) = symbolizer.try_lock() else { return }; // it is used just now
        let stats = symbolizer.stats();
        if stats.hits + stats.misses != self.look_ups {
            *self = UnusedSymbols { look_ups: stats.hits + stats.misses, since: Instant::now() };
        } else if stats.objects > 0 && self.since.elapsed() > UNUSED {
            symbolizer.drop_all();
        }
    }
}
