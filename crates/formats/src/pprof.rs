//! pprof's profile, gzip'd: the form that `go tool pprof`, Grafana and Parca read.
//! Not here: the wire format (`protobuf.rs`), and HTTP headers.
//!
//! Field numbers are those of `profile.proto` in the pprof repository. Each sample
//! has two values, the number of samples and their nanoseconds; its labels are
//! `thread`, `thread_id` (unless threads are merged), `state` and, of a blocked thread, the
//! `syscall` it waits in. The first mapping is the main program, as readers expect; ids count
//! from 1. Inlined functions are lines of one location, innermost first. Addresses are as
//! recorded: return addresses, except at the leaf. There is no place for the process: a comment
//! `swipr: process PID NAME` tells it.

mod tables;

use crate::aggregate::{Finished, Total, Totals};
use crate::model::{Header, Mode, Sample, State, Summary};
use crate::protobuf::Message;
use crate::raw_tree::note;
use crate::stats::{stats_line, why_empty};
use crate::{Format, Options, names, state, syscalls};
use crc::{CRC_32_ISO_HDLC, Crc, Table};
use tables::Tables;

/// With the smallest table.
const CRC: Crc<u32, Table<1>> = Crc::<u32, Table<1>>::new(&CRC_32_ISO_HDLC);

pub(crate) fn make(options: &Options) -> Box<dyn Format> {
    Box::new(Pprof { options: options.clone(), header: None, totals: Some(Totals::new(options)) })
}

struct Pprof {
    options: Options,
    header: Option<Header>,
    /// `None` once written.
    totals: Option<Totals>,
}

impl Format for Pprof {
    fn begin(&mut self, header: &Header, _out: &mut Vec<u8>) {
        self.header = Some(header.clone());
    }

    fn sample(&mut self, sample: &Sample<'_>, _out: &mut Vec<u8>) {
        if let Some(totals) = &mut self.totals {
            totals.add(sample);
        }
    }

    fn finish(&mut self, summary: &Summary, out: &mut Vec<u8>) {
        let (Some(totals), Some(header)) = (self.totals.take().map(Totals::finish), self.header.take())
        else {
            return;
        };
        let profile = profile(&self.options, &header, &totals, summary);
        gzip(&profile.into_bytes(), out);
    }
}

/// One member of a gzip file (RFC 1952), without a name or a time.
fn gzip(bytes: &[u8], out: &mut Vec<u8>) {
    const DEFLATE: u8 = 8;
    const UNKNOWN_SYSTEM: u8 = 255;
    const FAST: u8 = 1;
    out.extend_from_slice(&[0x1f, 0x8b, DEFLATE, 0, 0, 0, 0, 0, 0, UNKNOWN_SYSTEM]);
    out.extend_from_slice(&miniz_oxide::deflate::compress_to_vec(bytes, FAST));
    out.extend_from_slice(&CRC.checksum(bytes).to_le_bytes());
    out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
}

fn profile(options: &Options, header: &Header, totals: &Finished, summary: &Summary) -> Message {
    let mut tables = Tables::new(options, header);
    tables.reserve_main_mapping(totals.frames());
    let clock = match header.mode {
        Mode::Wall => "wall",
        Mode::Cpu => "cpu",
    };
    let mut profile = Message::new();
    let snapshot = options.snapshot;
    let (kind, unit) = match &header.measure {
        _ if snapshot => ("goroutine", "count"),
        Some(measure) => (measure.kind.as_str(), measure.unit.as_str()),
        None => (clock, "nanoseconds"),
    };
    if !snapshot {
        profile.message(1, value_type(&mut tables, "samples", "count"));
    }
    profile.message(1, value_type(&mut tables, kind, unit));
    for total in totals.iter() {
        profile.message(2, sample(options, &mut tables, &total));
    }
    profile.signed(9, header.start_ns);
    profile.signed(10, summary.duration_ns);
    profile.message(11, value_type(&mut tables, kind, unit));
    profile.signed(12, if snapshot { 1 } else { header.interval_ns });
    profile.packed(13, comments(options, &mut tables, header, summary, totals.is_empty()));
    profile.number(14, tables.string(kind));
    tables.write(&mut profile);
    profile
}

fn value_type(tables: &mut Tables<'_>, kind: &str, unit: &str) -> Message {
    let mut message = Message::new();
    message.number(1, tables.string(kind));
    message.number(2, tables.string(unit));
    message
}

fn sample(options: &Options, tables: &mut Tables<'_>, total: &Total) -> Message {
    let mut locations: Vec<u64> = total.stack.frames.iter().map(|frame| tables.location(frame)).collect();
    if locations.is_empty() {
        locations.push(tables.location(&note("[no stack]")));
    }
    let mut message = Message::new();
    message.packed(1, locations);
    let values = [total.sum.samples, total.sum.ns];
    message.packed(2, values.into_iter().take(if options.snapshot { 1 } else { 2 }));
    if let Some(thread) = &total.thread {
        let name = names::printable(&thread.name);
        message.message(3, text_label(tables, "thread", &name));
        let mut label = Message::new();
        label.number(1, tables.string("thread_id"));
        label.number(3, u64::from(thread.tid));
        message.message(3, label);
    }
    message.message(3, text_label(tables, "state", state::word(total.state)));
    if let State::Blocked(Some(number)) = total.state {
        let call = syscalls::name(number).map_or_else(|| number.to_string(), str::to_owned);
        message.message(3, text_label(tables, "syscall", &call));
    }
    message
}

fn text_label(tables: &mut Tables<'_>, key: &str, value: &str) -> Message {
    let mut label = Message::new();
    label.number(1, tables.string(key));
    label.number(2, tables.string(value));
    label
}

fn comments(
    options: &Options,
    tables: &mut Tables<'_>,
    header: &Header,
    summary: &Summary,
    empty: bool,
) -> Vec<u64> {
    let mut texts = Vec::new();
    if let Some(title) = &options.title {
        texts.push(names::printable(title));
    }
    texts.push(format!("swipr: {}", stats_line(summary)));
    if header.pid > 0 {
        texts.push(format!("swipr: process {} {}", header.pid, names::printable(&header.process_name)));
    }
    if empty {
        texts.push(format!("swipr: no samples: {}", why_empty(summary)));
    }
    texts.iter().map(|text| tables.string(text)).collect()
}
