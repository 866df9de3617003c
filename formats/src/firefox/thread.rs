//! One thread of a profile: its tables, samples and markers.
//!
//! A frame of a recording becomes a row for each of its functions, from the outermost, with rising `inlineDepth`. An address is
//! counted from its file's start; return addresses are moved into the call, as the reader expects.

use std::hash::Hash;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::libraries::Libraries;
use super::ms;
use crate::class::{self, Class};
use crate::columns::Numbers;
use crate::entries::shown_functions;
use crate::intern::Interner;
use crate::json::{Members, string};
use crate::model::{Frame, FrameKind, Function, Header, Mode, State, Summary, Thread};
use crate::raw_tree::RawTree;
use crate::timeline::Span;
use crate::{Options, names, state};

/// CPU time that spans tell.
pub(super) fn cpu_ns(spans: &[Span]) -> u64 {
    let running = spans.iter().filter(|span| span.state == State::Running);
    running.fold(0u64, |sum, span| sum.saturating_add(span.sum.ns))
}

/// A row of the frame table.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Row {
    address: Option<u64>,
    inline_depth: usize,
    class: Class,
    function: usize,
    symbol: Option<usize>,
    line: Option<u32>,
}

/// A row of the function table: name, library's resource, file.
type FunctionRow = (usize, Option<usize>, Option<usize>);

pub(super) struct Tables<'a> {
    options: &'a Options,
    header: &'a Header,
    stacks: &'a RawTree,
    libraries: &'a Libraries,
    strings: Interner<Arc<str>>,
    /// Library and name.
    resources: Interner<(usize, usize)>,
    functions: Interner<FunctionRow>,
    /// Library, address, name.
    symbols: Interner<(usize, u64, usize)>,
    frames: Interner<Row>,
    /// Prefix and frame.
    chain: Interner<(Option<usize>, usize)>,
    nodes: FxHashMap<u32, Option<usize>>,
}

impl<'a> Tables<'a> {
    pub(super) fn new(
        options: &'a Options,
        header: &'a Header,
        stacks: &'a RawTree,
        libraries: &'a Libraries,
    ) -> Self {
        Tables {
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
        Members::object()
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
            .field("markers", markers)
            .field("stackTable", self.chain_json())
            .field("frameTable", self.frames_json())
            .field("funcTable", self.functions_json())
            .field("resourceTable", self.resources_json())
            .field("nativeSymbols", self.symbols_json())
            .field("stringArray", column(&self.strings, |text| string(text)))
            .end()
    }

    fn samples(&mut self, spans: &[Span]) -> String {
        let (mut stacks, mut times) = (Members::array(), Members::array());
        let (mut weights, mut cpu) = (Members::array(), Members::array());
        for span in spans {
            stacks.push(number(self.stack(span.stack)));
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

    /// Times in a row during which the thread did not run.
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
            if first.state == State::Running {
                continue;
            }
            let end_ns = rest.first().map_or(last_ns, |next| next.time_ns).max(first.time_ns);
            count += 1;
            category.push(Class::Waiting as u64);
            name.push(self.text(&state::phrase(first.state)) as u64);
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

    fn text(&mut self, text: &str) -> usize {
        self.strings.intern(text.into()).id
    }

    /// The row of the stack table for a node where a stack ends; `None`: there are no frames.
    fn stack(&mut self, node: u32) -> Option<usize> {
        if let Some(&stack) = self.nodes.get(&node) {
            return stack;
        }
        let stacks = self.stacks;
        let mut path: Vec<&Frame> = stacks.tree.stack(node).map(|known| &known.0).collect();
        path.reverse();
        let mut stack = None;
        let mut path = path.into_iter().peekable();
        while let Some(frame) = path.next() {
            // A thread stands at its leaf; everywhere else it will return to.
            let is_leaf = path.peek().is_none_or(|next| next.kind == FrameKind::Note);
            stack = self.rows(stack, frame, is_leaf);
        }
        self.nodes.insert(node, stack);
        stack
    }

    fn rows(&mut self, prefix: Option<usize>, frame: &Frame, is_leaf: bool) -> Option<usize> {
        let pc = if is_leaf { frame.address } else { frame.address.saturating_sub(1) };
        let module = frame.module.as_deref();
        let place = module.and_then(|module| {
            let offset = pc.wrapping_sub(module.start).wrapping_add(module.file_offset);
            Some((self.libraries.id(module)?, offset))
        });
        let resource = place.zip(module).map(|((library, _), module)| {
            let name = self.text(&Libraries::name(module));
            self.resources.intern((library, name)).id
        });
        let functions = shown_functions(frame, self.options);
        let symbol = place.zip(functions.last()).map(|((library, offset), function)| {
            let name = self.name(frame, function);
            self.symbols.intern((library, offset.saturating_sub(function.offset), name)).id
        });
        let address = place.map(|(_, offset)| offset);
        let mut stack = prefix;
        let mut row = |tables: &mut Self, name: usize, file: Option<usize>, line, inline_depth| {
            let class = match frame.kind {
                FrameKind::Note if tables.is_waiting(frame) => Class::Waiting,
                _ => class::of(frame, inline_depth > 0),
            };
            let function = tables.functions.intern((name, resource, file)).id;
            let frame = tables.frames.intern(Row { address, inline_depth, class, function, symbol, line }).id;
            stack = Some(tables.chain.intern((stack, frame)).id);
        };
        if functions.is_empty() {
            let name = self.text(&names::unnamed(frame, self.header.pid));
            row(self, name, None, None, 0);
        }
        for (depth, function) in functions.iter().rev().enumerate() {
            let name = self.name(frame, function);
            let file = function.file.as_deref().map(|file| self.text(&names::printable(file)));
            row(self, name, file, function.line, depth);
        }
        stack
    }

    fn name(&mut self, frame: &Frame, function: &Function) -> usize {
        let name = match frame.kind {
            FrameKind::Note => Some(names::note(&function.name)),
            FrameKind::Native | FrameKind::Jit => names::symbol(function, self.options.names),
        };
        self.text(&name.unwrap_or_else(|| names::unnamed(frame, self.header.pid)))
    }

    /// Whether a remark tells what a thread waits for.
    fn is_waiting(&self, frame: &Frame) -> bool {
        let text = frame.functions.first().map_or("", |function| &function.name);
        text.starts_with("[blocked") || text.starts_with("[waiting")
    }

    fn chain_json(&self) -> String {
        Members::object()
            .field("length", self.chain.len())
            .field("prefix", column(&self.chain, |(prefix, _)| number(*prefix)))
            .field("frame", column(&self.chain, |(_, frame)| frame.to_string()))
            .end()
    }

    fn frames_json(&self) -> String {
        let frames = &self.frames;
        let same = |text: &str| column(frames, |_| text.to_owned());
        Members::object()
            .field("length", frames.len())
            .field(
                "address",
                column(frames, |row| row.address.map_or("-1".to_owned(), |address| address.to_string())),
            )
            .field("inlineDepth", column(frames, |row| row.inline_depth.to_string()))
            .field("category", column(frames, |row| (row.class as u8).to_string()))
            .field("subcategory", same("0"))
            .field("func", column(frames, |row| row.function.to_string()))
            .field("nativeSymbol", column(frames, |row| number(row.symbol)))
            .field("innerWindowID", same("0"))
            .field("line", column(frames, |row| number(row.line)))
            .field("column", same("null"))
            .end()
    }

    fn functions_json(&self) -> String {
        let functions = &self.functions;
        let same = |text: &str| column(functions, |_| text.to_owned());
        Members::object()
            .field("length", functions.len())
            .field("name", column(functions, |(name, _, _)| name.to_string()))
            .field("isJS", same("false"))
            .field("relevantForJS", same("false"))
            .field(
                "resource",
                column(functions, |(_, resource, _)| resource.map_or("-1".to_owned(), |id| id.to_string())),
            )
            .field("fileName", column(functions, |(_, _, file)| number(*file)))
            .field("lineNumber", same("null"))
            .field("columnNumber", same("null"))
            .end()
    }

    fn resources_json(&self) -> String {
        let resources = &self.resources;
        Members::object()
            .field("length", resources.len())
            .field("lib", column(resources, |(library, _)| library.to_string()))
            .field("name", column(resources, |(_, name)| name.to_string()))
            .field("host", column(resources, |_| "null".to_owned()))
            .field("type", column(resources, |_| "1".to_owned()))
            .end()
    }

    fn symbols_json(&self) -> String {
        let symbols = &self.symbols;
        Members::object()
            .field("length", symbols.len())
            .field("libIndex", column(symbols, |(library, _, _)| library.to_string()))
            .field("address", column(symbols, |(_, address, _)| address.to_string()))
            .field("name", column(symbols, |(_, _, name)| name.to_string()))
            .field("functionSize", column(symbols, |_| "null".to_owned()))
            .end()
    }
}

/// A table's column, in order of the rows' numbers.
fn column<T: Hash + Eq>(rows: &Interner<T>, value: impl Fn(&T) -> String) -> String {
    rows.values().into_iter().map(value).fold(Members::array(), Members::element).end()
}

fn number(value: Option<impl ToString>) -> String {
    value.map_or_else(|| "null".to_owned(), |value| value.to_string())
}
