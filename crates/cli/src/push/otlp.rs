//! OTLP profiles (`opentelemetry/proto/profiles/v1development/profiles.proto` of
//! opentelemetry-proto 1.9): one profile, its stacks, names and attributes in the dictionary, each
//! entry once. Place 0 of each table is the empty entry.

use std::hash::Hash;
use std::sync::Arc;

use crate::event::OwnedSample;
use rustc_hash::FxHashMap;
use swipr_formats::model::{Frame, FrameKind, Header, Language, Mode, Module, Stack, State, Summary, Thread};
use swipr_formats::protobuf::Message;

/// What is sent of the process besides the profile.
#[derive(Clone, Debug)]
pub struct Resource<'a> {
    /// `service.name`.
    pub service: &'a str,
    /// Further attributes.
    pub labels: &'a [(String, String)],
}

/// The body of a request to export one profile.
pub fn request(
    header: &Header,
    samples: &[OwnedSample],
    summary: &Summary,
    resource: &Resource<'_>,
    id: &[u8; 16],
) -> Vec<u8> {
    let mut tables = Tables::new();
    let mut profile = Message::new();
    let kind = match header.mode {
        Mode::Cpu => "cpu",
        Mode::Wall => "wall",
    };
    profile.message(1, tables.value_type(kind));
    for (key, sum_ns) in sums(samples) {
        let attributes = tables.attributes(&key);
        let mut sample = Message::new();
        sample.number(1, tables.stack(&key.stack));
        sample.packed(2, attributes);
        sample.packed(4, [sum_ns]);
        profile.message(2, sample);
    }
    profile.fixed64(3, header.start_ns);
    profile.number(4, summary.duration_ns);
    profile.message(5, tables.value_type(kind));
    profile.number(6, header.interval_ns);
    profile.block(7, id);

    let mut scope = Message::new();
    scope.text(1, "swipr");
    scope.text(2, env!("CARGO_PKG_VERSION"));
    let mut scope_profiles = Message::new();
    scope_profiles.message(1, scope);
    scope_profiles.message(2, profile);
    let mut resource_profiles = Message::new();
    resource_profiles.message(1, resource_message(header, resource));
    resource_profiles.message(2, scope_profiles);
    let mut request = Message::new();
    request.message(1, resource_profiles);
    request.message(2, tables.dictionary());
    request.into_bytes()
}

/// What makes samples the same.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Key {
    thread: Arc<Thread>,
    state: State,
    stack: Arc<Stack>,
}

/// Time by thread, state and stack, in the order in which they came.
fn sums(samples: &[OwnedSample]) -> Vec<(Key, u64)> {
    let mut places: FxHashMap<Key, usize> = FxHashMap::default();
    let mut sums: Vec<(Key, u64)> = Vec::new();
    for sample in samples {
        let key =
            Key { thread: Arc::clone(&sample.thread), state: sample.state, stack: Arc::clone(&sample.stack) };
        let ns = sample.weight_ns.saturating_mul(u64::from(sample.ticks));
        let place = *places.entry(key.clone()).or_insert(sums.len());
        match sums.get_mut(place) {
            Some((_, sum)) => *sum = sum.saturating_add(ns),
            None => sums.push((key, ns)),
        }
    }
    sums
}

fn resource_message(header: &Header, resource: &Resource<'_>) -> Message {
    let mut message = Message::new();
    let executable = &header.executable;
    let mut add = |key: &str, value: Message| {
        let mut pair = Message::new();
        pair.text(1, key);
        pair.message(2, value);
        message.message(1, pair);
    };
    add("service.name", text_value(resource.service));
    add("process.pid", number_value(u64::from(header.pid)));
    add("process.executable.path", text_value(executable));
    for (key, value) in resource.labels {
        add(key, text_value(value));
    }
    message
}

/// As OpenTelemetry's conventions have it, which know no type of JIT code of any language.
fn frame_type(kind: FrameKind) -> Option<&'static str> {
    match kind {
        FrameKind::Native | FrameKind::Jit => Some("native"),
        FrameKind::Interpreted(Language::Python) => Some("cpython"),
        FrameKind::Interpreted(Language::Perl) => Some("perl"),
        FrameKind::Interpreted(Language::Php) => Some("php"),
        FrameKind::Interpreted(Language::Ruby) => Some("ruby"),
        FrameKind::Interpreted(Language::JavaScript) => Some("v8js"),
        FrameKind::Interpreted(Language::Java) => Some("jvm"),
        FrameKind::Note => None,
    }
}

/// `AnyValue` with a text.
fn text_value(text: &str) -> Message {
    let mut value = Message::new();
    value.text(1, text);
    value
}

/// `AnyValue` with a number.
fn number_value(number: u64) -> Message {
    let mut value = Message::new();
    value.number(3, number);
    value
}

/// Places in a table for what is met, and its entries.
struct Table<K> {
    places: FxHashMap<K, u64>,
    entries: Vec<Message>,
}

impl<K: Hash + Eq> Table<K> {
    fn new() -> Table<K> {
        Table { places: FxHashMap::default(), entries: vec![Message::new()] }
    }

    fn find(&self, key: &K) -> Option<u64> {
        self.places.get(key).copied()
    }

    fn add(&mut self, key: K, entry: Message) -> u64 {
        let place = self.entries.len() as u64;
        self.places.insert(key, place);
        self.entries.push(entry);
        place
    }
}

struct Tables {
    mappings: Table<Arc<Module>>,
    locations: Table<Frame>,
    functions: Table<(u64, u64, u64)>,
    attributes: Table<(String, String)>,
    stacks: Table<Arc<Stack>>,
    strings: FxHashMap<String, u64>,
    texts: Vec<String>,
}

impl Tables {
    fn new() -> Tables {
        let strings = [(String::new(), 0)].into_iter().collect();
        let (mappings, locations, functions) = (Table::new(), Table::new(), Table::new());
        let (attributes, stacks) = (Table::new(), Table::new());
        Tables { mappings, locations, functions, attributes, stacks, strings, texts: vec![String::new()] }
    }

    fn string(&mut self, text: &str) -> u64 {
        if let Some(&place) = self.strings.get(text) {
            return place;
        }
        let place = self.texts.len() as u64;
        self.strings.insert(text.to_owned(), place);
        self.texts.push(text.to_owned());
        place
    }

    fn value_type(&mut self, kind: &str) -> Message {
        let mut message = Message::new();
        message.number(1, self.string(kind));
        message.number(2, self.string("nanoseconds"));
        message
    }

    fn attributes(&mut self, key: &Key) -> Vec<u64> {
        let state = match key.state {
            State::Running => "running",
            State::Runnable => "runnable",
            State::Blocked(_) => "blocked",
        };
        let tid = u64::from(key.thread.tid);
        vec![
            self.attribute("thread.name", &key.thread.name, text_value(&key.thread.name)),
            self.attribute("thread.id", &tid.to_string(), number_value(tid)),
            self.attribute("thread.state", state, text_value(state)),
        ]
    }

    fn attribute(&mut self, key: &str, shown: &str, value: Message) -> u64 {
        let id = (key.to_owned(), shown.to_owned());
        if let Some(place) = self.attributes.find(&id) {
            return place;
        }
        let mut entry = Message::new();
        entry.number(1, self.string(key));
        entry.message(2, value);
        self.attributes.add(id, entry)
    }

    fn stack(&mut self, stack: &Arc<Stack>) -> u64 {
        if let Some(place) = self.stacks.find(stack) {
            return place;
        }
        let locations: Vec<u64> = stack.frames.iter().map(|frame| self.location(frame)).collect();
        let mut entry = Message::new();
        entry.packed(1, locations);
        self.stacks.add(Arc::clone(stack), entry)
    }

    fn location(&mut self, frame: &Frame) -> u64 {
        if let Some(place) = self.locations.find(frame) {
            return place;
        }
        let mut entry = Message::new();
        if let Some(module) = &frame.module {
            entry.number(1, self.mapping(module));
        }
        entry.number(2, frame.address);
        for function in frame.functions.iter() {
            let (name, file) =
                (self.string(&function.name), self.string(function.file.as_deref().unwrap_or("")));
            let system_name = self.string(function.mangled.as_deref().unwrap_or(&function.name));
            let place = self.function(name, system_name, file);
            let mut line = Message::new();
            line.number(1, place);
            line.number(2, u64::from(function.line.unwrap_or(0)));
            entry.message(3, line);
        }
        if let Some(kind) = frame_type(frame.kind) {
            let attribute = self.attribute("profile.frame.type", kind, text_value(kind));
            entry.packed(4, [attribute]);
        }
        self.locations.add(frame.clone(), entry)
    }

    fn function(&mut self, name: u64, system_name: u64, file: u64) -> u64 {
        let key = (name, system_name, file);
        if let Some(place) = self.functions.find(&key) {
            return place;
        }
        let mut entry = Message::new();
        entry.number(1, name);
        entry.number(2, system_name);
        entry.number(3, file);
        self.functions.add(key, entry)
    }

    fn mapping(&mut self, module: &Arc<Module>) -> u64 {
        if let Some(place) = self.mappings.find(module) {
            return place;
        }
        let mut entry = Message::new();
        entry.number(1, module.start);
        entry.number(2, module.end);
        entry.number(3, module.file_offset);
        entry.number(4, self.string(&module.path));
        if !module.build_id.is_empty() {
            let id: String = module.build_id.iter().map(|byte| format!("{byte:02x}")).collect();
            let attribute = self.attribute("process.executable.build_id.gnu", &id, text_value(&id));
            entry.packed(5, [attribute]);
        }
        self.mappings.add(Arc::clone(module), entry)
    }

    fn dictionary(self) -> Message {
        let mut message = Message::new();
        let tables = [
            (1, self.mappings.entries),
            (2, self.locations.entries),
            (3, self.functions.entries),
            (4, vec![Message::new()]),
        ];
        for (field, entries) in tables {
            entries.into_iter().for_each(|entry| message.message(field, entry));
        }
        self.texts.iter().for_each(|text| message.text(5, text));
        self.attributes.entries.into_iter().for_each(|entry| message.message(6, entry));
        self.stacks.entries.into_iter().for_each(|entry| message.message(7, entry));
        message
    }
}

#[cfg(test)]
mod tests;
