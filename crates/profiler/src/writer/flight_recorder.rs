//! The flight recorder: the last samples, as addresses, and where their names are found. No file is
//! read before names are requested.

use crate::mappings::Symbols;
use rustc_hash::FxHashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use swipr_formats::FlightRecorder;
use swipr_formats::model::{Header, Module};
use swipr_os::process::EpochClock;
use swipr_symbols::symbolizer::Symbolizer;

/// Symbols are dropped when no name was requested for so long.
const UNUSED: Duration = Duration::from_secs(60);

/// Where the names of modules are found.
pub type Places = FxHashMap<Arc<Module>, Arc<Symbols>>;

/// The flight recorder; `None`: there is none.
pub type SharedFlightRecorder = Arc<Mutex<Option<AddressRecorder>>>;

/// A flight recorder of addresses.
#[derive(Debug)]
pub struct AddressRecorder {
    /// The samples.
    pub recorder: FlightRecorder,
    /// Where the names of the samples' modules are found.
    pub places: Places,
    /// That of the samples' times: it knows of no later change of the time of day.
    pub clock: EpochClock,
}

impl AddressRecorder {
    /// Keeps the last `keep` of a recording, whose samples have their times by `clock`.
    pub fn new(header: Header, keep: Duration, clock: EpochClock) -> AddressRecorder {
        AddressRecorder {
            recorder: FlightRecorder::new(header, keep.as_nanos() as u64),
            places: Places::default(),
            clock,
        }
    }

    /// Adds modules that new stacks have frames in. Forgets modules that are unloaded and in no
    /// stack any more.
    pub fn add_modules(&mut self, modules: Vec<(Arc<Module>, Arc<Symbols>)>) {
        self.places.retain(|module, _| Arc::strong_count(module) > 1);
        self.places.extend(modules);
    }
}

/// Drops symbols that are not used any more: the flight recorder runs for ever and would keep them.
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
    pub fn drop_if_unused(&mut self, symbolizer: &Mutex<Symbolizer>) {
        let Ok(mut symbolizer) = symbolizer.try_lock() else { return }; // it is used just now
        let stats = symbolizer.stats();
        if stats.hits + stats.misses != self.look_ups {
            *self = UnusedSymbols { look_ups: stats.hits + stats.misses, since: Instant::now() };
        } else if stats.objects > 0 && self.since.elapsed() > UNUSED {
            symbolizer.drop_all();
        }
    }
}
