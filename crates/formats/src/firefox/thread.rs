//! One thread of a profile: its tables, samples and markers.
//!
//! A frame of a recording becomes a row for each of its functions, from the outermost, with rising
//! `inlineDepth`. An address is counted from its image's base; return addresses are moved into the
//! call, as the reader expects.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::libraries::Libraries;
use super::ms;
use crate::category::{self, Class};
use crate::intern::Interner;
use crate::jit_tier::tier;
use crate::json::{Members, string};
use crate::model::{Frame, FrameKind, Function, Header, Mode, State, Summary, Thread};
use crate::page_data::Numbers;
use crate::raw_tree::RawTree;
use crate::text_frames::shown_functions;
use crate::timeline::Span;
use crate::{Options, names, state};

/// CPU time of spans.
pub(super) fn cpu_ns(spans: &[Span]) -> u64 {
    let running = spans.iter().filter(|span| span.state == State::Running);
    running.fold(0u64, |sum, span| sum.saturating_add(span.sum.ns))
}

/// A row of any table, as numbers. [`NONE`] is what is not there.
type Row = [u64; 6];

const NONE: u64 = u64::MAX;
/// Of a number that holds a category and a subcategory.
const CATEGORY_BITS: u32 = 8;

pub(super) struct ThreadTables<'a> {
    options: &'a Options,
    header: &'a Header,
    stacks: &'a RawTree,
    libraries: &'a Libraries,
    strings: Interner<Arc<str>>,
    /// Library and name.
    resources: Interner<Row>,
    /// Name, resource, file.
    functions: Interner<Row>,
    /// Library, address, name.
    symbols: Interner<Row>,
    /// Address, inline depth, category and (in higher bits) subcategory, function, symbol, line.
    frames: Interner<Row>,
    /// Prefix and frame.
    chain: Interner<Row>,
    /// Row of the stack table, by node.
    nodes: FxHashMap<u32, u64>,
}

impl<'a> ThreadTables<'a> {
    pub(super) fn new(
        options: &'a Options,
        header: &'a Header,
        stacks: &'a RawTree,
        libraries: &'a Libraries,
    ) -> Self {
        ThreadTables {
            options,
            header,
            stacks,
            libraries,
            strings: Interner::new(),
            resources: Interner::new(),
            functions: Interner::new(),
            symbols: Interner::new(),
            frames: Interner::new(),
            chain: Interner::new(),
            nodes: FxHashMap::default(),
        }
    }

    /// The thread.
    pub(super) fn json(&mut self, thread: &Thread, spans: &[Span], summary: &Summary) -> String {
        let samples = self.samples(spans);
        let markers = self.markers(spans, summary);
        let object = Members::object()
            .field("name", string(&names::printable(&thread.name)))
            .field("isMainThread", thread.tid == self.header.pid)
            .field("processType", string("default"))
            .field("processName", string(&names::printable(&self.header.process_name)))
            .field("processStartupTime", 0)
            .field("processShutdownTime", "null")
            .field("registerTime", 0)
            .field("unregisterTime", "null")
            .field("pausedRanges", "[]")
            .field("showMarkersInTimeline", "true")
            .field("pid", string(&self.header.pid.to_string()))
            .field("tid", thread.tid)
            .field("samples", samples)
            .field("markers", markers);
        let mut strings = Members::array();
        self.strings.values().iter().for_each(|text| strings.push(string(text)));
        self.tables(object).field("stringArray", strings.end()).end()
    }

    fn samples(&mut self, spans: &[Span]) -> String {
        let (mut stacks, mut times) = (Members::array(), Members::array());
        let (mut weights, mut cpu) = (Members::array(), Members::array());
        for span in spans {
            match self.stack(span.stack) {
                NONE => stacks.push("null"),
                stack => stacks.push(stack),
            }
            times.push(ms(span.time_ns.saturating_sub(self.header.start_ns)));
            weights.push(ms(span.sum.ns));
            cpu.push(if span.state == State::Running { span.sum.ns / 1000 } else { 0 });
        }
        Members::object()
            .field("length", spans.len())
            .field("weightType", string("tracing-ms"))
            .field("stack", stacks.end())
            .field("time", times.end())
            .field("weight", weights.end())
            .field("threadCPUDelta", cpu.end())
            .end()
    }

    /// Times in a row during which the thread did not run; none where times are not known.
    fn markers(&mut self, spans: &[Span], summary: &Summary) -> String {
        let (mut count, mut category, mut data) = (0u64, Numbers::new(), Members::array());
        let (mut name, mut starts, mut ends, mut phase) =
            (Numbers::new(), Members::array(), Members::array(), Numbers::new());
        let last_ns = self.header.start_ns.saturating_add(summary.duration_ns);
        let mut at = spans;
        while let (Some(first), Mode::Wall) = (at.first(), self.header.mode) {
            let alike = at.iter().take_while(|span| span.state == first.state).count();
            let (_, rest) = at.split_at(alike);
            at = rest;
            if first.state == State::Running || first.time_ns == 0 {
                continue;
            }
            let end_ns = rest.first().map_or(last_ns, |next| next.time_ns).max(first.time_ns);
            count += 1;
            category.push(Class::Waiting as u64);
            name.push(self.text(&state::phrase(first.state)));
            starts.push(ms(first.time_ns.saturating_sub(self.header.start_ns)));
            ends.push(ms(end_ns.saturating_sub(self.header.start_ns)));
            phase.push(1);
            let payload = Members::object().field("type", string("ThreadState"));
            data.push(payload.field("state", string(state::word(first.state))).end());
        }
        Members::object()
            .field("length", count)
            .field("category", category.end())
            .field("data", data.end())
            .field("startTime", starts.end())
            .field("endTime", ends.end())
            .field("name", name.end())
            .field("phase", phase.end())
            .end()
    }

    fn text(&mut self, text: &str) -> u64 {
        self.strings.intern(text.into()).id as u64
    }

    /// The row of the stack table for a node where a stack ends; `NONE`: there are no frames.
    fn stack(&mut self, node: u32) -> u64 {
        if let Some(&stack) = self.nodes.get(&node) {
            return stack;
        }
        let stacks = self.stacks;
        let path: Vec<&Frame> = stacks.tree.stack(node).map(|known| &known.0).collect();
        let mut stack = NONE;
        for (index, frame) in path.iter().enumerate().rev() {
            // The leaf's address is where the thread is; all others are return addresses.
            let inner = index.checked_sub(1).and_then(|inner| path.get(inner));
            let is_leaf = inner.is_none_or(|inner| inner.kind == FrameKind::Note);
            stack = self.rows(stack, frame, is_leaf);
        }
        self.nodes.insert(node, stack);
        stack
    }

    fn rows(&mut self, prefix: u64, frame: &Frame, is_leaf: bool) -> u64 {
        let pc = if is_leaf { frame.address } else { frame.address.saturating_sub(1) };
        let functions = shown_functions(frame, self.options);
        let (mut address, mut resource, mut symbol) = (NONE, NONE, NONE);
        let library =
            frame.module.as_deref().and_then(|module| Some((module, self.libraries.id(module)? as u64)));
        if let Some((module, library)) = library {
            address = pc.wrapping_sub(module.base);
            let name = self.text(&Libraries::name(module));
            resource = row(&mut self.resources, &[library, name]);
            if let Some(function) = functions.last() {
                let name = self.name(frame, function);
                symbol = row(&mut self.symbols, &[library, address.saturating_sub(function.offset), name]);
            }
        }
        let mut stack = prefix;
        let unnamed = functions.is_empty().then_some(None);
        for (depth, function) in functions.iter().rev().map(Some).chain(unnamed).enumerate() {
            let (name, file, line) = match function {
                Some(function) => {
                    let name = self.name(frame, function);
                    let file =
                        function.file.as_deref().map_or(NONE, |file| self.text(&names::printable(file)));
                    (name, file, function.line.map_or(NONE, u64::from))
                }
                None => (self.text(&names::unnamed(frame)), NONE, NONE),
            };
            let class = match frame.kind {
                FrameKind::Note if is_waiting(frame) => Class::Waiting,
                _ => category::of(frame, depth > 0),
            };
            let tier = function.filter(|_| class == Class::Jit).and_then(|function| tier(&function.name));
            let kind = tier.map_or(0, |tier| tier as u64 + 1);
            let function = row(&mut self.functions, &[name, resource, file]);
            let category = class as u64 | kind << CATEGORY_BITS;
            let numbers = [address, depth as u64, category, function, symbol, line];
            let frame = row(&mut self.frames, &numbers);
            stack = row(&mut self.chain, &[stack, frame]);
        }
        stack
    }

    fn name(&mut self, frame: &Frame, function: &Function) -> u64 {
        let name = match frame.kind {
            FrameKind::Note => Some(names::note(&function.name)),
            FrameKind::Native | FrameKind::Jit | FrameKind::Interpreted(_) => {
                names::symbol(frame, function, self.options.names)
            }
        };
        self.text(&name.unwrap_or_else(|| names::unnamed(frame)))
    }

    fn tables(&self, thread: Members) -> Members {
        use Column::{High, Is, Low, Of, OrMinusOne};
        thread
            .field("stackTable", table(&self.chain, &[("prefix", Of(0)), ("frame", Of(1))]))
            .field(
                "frameTable",
                table(
                    &self.frames,
                    &[
                        ("address", OrMinusOne(0)),
                        ("inlineDepth", Of(1)),
                        ("category", Low(2)),
                        ("subcategory", High(2)),
                        ("func", Of(3)),
                        ("nativeSymbol", Of(4)),
                        ("innerWindowID", Is("0")),
                        ("line", Of(5)),
                        ("column", Is("null")),
                    ],
                ),
            )
            .field(
                "funcTable",
                table(
                    &self.functions,
                    &[
                        ("name", Of(0)),
                        ("isJS", Is("false")),
                        ("relevantForJS", Is("false")),
                        ("resource", OrMinusOne(1)),
                        ("fileName", Of(2)),
                        ("lineNumber", Is("null")),
                        ("columnNumber", Is("null")),
                    ],
                ),
            )
            .field(
                "resourceTable",
                table(
                    &self.resources,
                    &[("lib", Of(0)), ("name", Of(1)), ("host", Is("null")), ("type", Is("1"))],
                ),
            )
            .field(
                "nativeSymbols",
                table(
                    &self.symbols,
                    &[("libIndex", Of(0)), ("address", Of(1)), ("name", Of(2)), ("functionSize", Is("null"))],
                ),
            )
    }
}

/// Whether a remark says what a thread waits for.
fn is_waiting(frame: &Frame) -> bool {
    let text = frame.functions.first().map_or("", |function| &function.name);
    text.starts_with("[blocked") || text.starts_with("[waiting")
}

/// The number of a row.
fn row(rows: &mut Interner<Row>, numbers: &[u64]) -> u64 {
    let mut row = [NONE; 6];
    row.iter_mut().zip(numbers).for_each(|(to, from)| *to = *from);
    rows.intern(row).id as u64
}

/// What a column of a table has.
#[derive(Clone, Copy)]
enum Column {
    /// A number of each row, or null.
    Of(usize),
    /// A number of each row, or -1.
    OrMinusOne(usize),
    /// The lower and the higher part of a number of each row.
    Low(usize),
    High(usize),
    /// The same in each row.
    Is(&'static str),
}

fn table(rows: &Interner<Row>, columns: &[(&str, Column)]) -> String {
    let rows = rows.values();
    let mut object = Members::object().field("length", rows.len());
    for &(name, column) in columns {
        let mut values = Members::array();
        for row in rows {
            let (number, none) = match column {
                Column::Of(number) => (row.get(number).copied(), "null"),
                Column::OrMinusOne(number) => (row.get(number).copied(), "-1"),
                Column::Low(number) => (row.get(number).map(|it| it % (1 << CATEGORY_BITS)), "null"),
                Column::High(number) => (row.get(number).map(|it| it >> CATEGORY_BITS), "null"),
                Column::Is(text) => (None, text),
            };
            match number.filter(|&number| number != NONE) {
                Some(number) => values.push(number),
                None => values.push(none),
            }
        }
        object = object.field(name, values.end());
    }
    object.end()
}
