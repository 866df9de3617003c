//! gperftools' binary CPU profile, for google-pprof: addresses with counts, and the mappings they
//! are in. google-pprof requests names at `/pprof/symbol`, or finds them in the files.
//!
//! Words of 64 bits: a head (0, 3, 0, the period in microseconds, 0), each stack (count, number of
//! addresses, addresses from the leaf), and an end (0, 1, 0); behind them the executable mappings
//! as text. From gperftools' `doc/cpuprofile-fileformat.html`.
//!
//! Its readers know no weights: a count represents so many periods. So counts are weights divided
//! by the period, and what one stack leaves of a period is carried to the next: the sum is the
//! recording's, to less than one period. Time without a stack has no place in it.

use std::io::Write;
use std::sync::Arc;

use crate::aggregate::Totals;
use crate::model::{FrameKind, Header, Module, Sample, Summary};
use crate::order::sorted;
use crate::{Format, FormatInfo, Options, names};

/// The format, which has no names.
pub static GPERFTOOLS: FormatInfo = FormatInfo {
    name: "gperftools",
    aliases: &[],
    mime: "application/octet-stream",
    suffix: "prof",
    description: "gperftools' CPU profile, for google-pprof",
    streams: false,
    make,
};

fn make(options: &Options) -> Box<dyn Format> {
    let options = Options { merge_threads: true, ..options.clone() };
    Box::new(Gperftools { interval_ns: 0, totals: Some(Totals::new(&options)) })
}

struct Gperftools {
    interval_ns: u64,
    totals: Option<Totals>,
}

impl Format for Gperftools {
    fn begin(&mut self, header: &Header, _out: &mut Vec<u8>) {
        self.interval_ns = header.interval_ns;
    }

    fn sample(&mut self, sample: &Sample<'_>, _out: &mut Vec<u8>) {
        if let Some(totals) = &mut self.totals {
            totals.add(sample);
        }
    }

    fn finish(&mut self, _summary: &Summary, out: &mut Vec<u8>) {
        let Some(totals) = self.totals.take().map(Totals::finish) else { return };
        let mut words =
            |words: &[u64]| words.iter().for_each(|word| out.extend_from_slice(&word.to_ne_bytes()));
        words(&[0, 3, 0, self.interval_ns / 1000, 0]);
        let period_ns = self.interval_ns.max(1);
        let mut rest_ns = 0;
        for total in totals.iter() {
            let code = total.stack.frames.iter().filter(|frame| frame.kind != FrameKind::Note);
            let addresses: Vec<u64> = code.map(|frame| frame.address).collect();
            // A stack without addresses has no place here; google-pprof takes a length of 0 for the
            // end.
            if addresses.is_empty() {
                continue;
            }
            let ns = total.sum.ns.saturating_add(rest_ns);
            rest_ns = ns % period_ns;
            if ns >= period_ns {
                words(&[ns / period_ns, addresses.len() as u64]);
                words(&addresses);
            }
        }
        words(&[0, 1, 0]);
        let modules: Vec<&Arc<Module>> = totals.frames().filter_map(|frame| frame.module.as_ref()).collect();
        let mut modules = sorted(&modules, &|a, b| a.start.cmp(&b.start));
        modules.dedup_by_key(|module| module.start);
        for module in modules {
            let path = names::printable(&module.path);
            // Writing to a Vec cannot fail.
            let _ = writeln!(
                out,
                "{:08x}-{:08x} r-xp {:08x} 00:00 0 {path}",
                module.start, module.end, module.file_offset
            );
        }
    }
}
