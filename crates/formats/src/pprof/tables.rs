//! The tables of a pprof profile: strings, mappings, locations, functions, each entry
//! written once and known by its id. Not here: samples.

use rustc_hash::FxHashMap;
use std::sync::Arc;

use crate::json::hex_bytes;
use crate::model::{Frame, FrameKind, Header, Module};
use crate::order::sorted;
use crate::protobuf::Message;
use crate::text_frames::shown_functions;
use crate::{Options, names};

/// A module of the profile and what is known of its locations.
#[derive(Default)]
struct Mapping {
    /// `None` for a main program that no frame is in.
    module: Option<Arc<Module>>,
    has_functions: bool,
    has_filenames: bool,
    has_lines: bool,
    has_inlines: bool,
}

/// What makes functions the same: name, system name, file; all string ids.
type FunctionKey = (u64, u64, u64);

pub(super) struct Tables<'a> {
    options: &'a Options,
    header: &'a Header,
    strings: FxHashMap<String, u64>,
    mappings: Vec<Mapping>,
    mapping_ids: FxHashMap<Arc<Module>, u64>,
    functions: FxHashMap<FunctionKey, u64>,
    locations: FxHashMap<Frame, u64>,
    /// Locations in the order of their ids, encoded.
    encoded_locations: Vec<Message>,
}

impl<'a> Tables<'a> {
    pub(super) fn new(options: &'a Options, header: &'a Header) -> Self {
        Tables {
            options,
            header,
            strings: FxHashMap::from_iter([(String::new(), 0)]),
            mappings: vec![Mapping::default()],
            mapping_ids: FxHashMap::default(),
            functions: FxHashMap::default(),
            locations: FxHashMap::default(),
            encoded_locations: Vec::new(),
        }
    }

    /// Makes the main program's module the first mapping if one of the frames is in it.
    pub(super) fn reserve_main_mapping<'f>(&mut self, frames: impl Iterator<Item = &'f Frame>) {
        let mut modules = frames.filter_map(|frame| frame.module.as_ref());
        let module = modules.find(|module| module.path == self.header.executable);
        if let (Some(module), Some(first)) = (module, self.mappings.first_mut()) {
            first.module = Some(Arc::clone(module));
            self.mapping_ids.insert(Arc::clone(module), 1);
        }
    }

    /// The id of a text; that of "" is 0.
    pub(super) fn string(&mut self, text: &str) -> u64 {
        if let Some(&id) = self.strings.get(text) {
            return id;
        }
        let id = self.strings.len() as u64;
        self.strings.insert(text.to_owned(), id);
        id
    }

    /// The id of a frame's location.
    pub(super) fn location(&mut self, frame: &Frame) -> u64 {
        if let Some(&id) = self.locations.get(frame) {
            return id;
        }
        let id = self.locations.len() as u64 + 1;
        self.locations.insert(frame.clone(), id);
        let mapping = match (frame.kind, &frame.module) {
            (FrameKind::Interpreted(language), _) => self.mapping(&Arc::new(Module::of(language))),
            (FrameKind::Jit, _) => self.mapping(&Arc::new(Module::of_jit())),
            (_, module) => module.as_ref().map_or(0, |module| self.mapping(module)),
        };
        let mut location = Message::new();
        location.number(1, id);
        location.number(2, mapping);
        location.number(3, frame.address);
        for line in self.lines(frame) {
            location.message(4, line);
        }
        self.note_what_is_known(mapping, frame);
        self.encoded_locations.push(location);
        id
    }

    fn mapping(&mut self, module: &Arc<Module>) -> u64 {
        if let Some(&id) = self.mapping_ids.get(module) {
            return id;
        }
        self.mappings.push(Mapping { module: Some(Arc::clone(module)), ..Mapping::default() });
        let id = self.mappings.len() as u64;
        self.mapping_ids.insert(Arc::clone(module), id);
        id
    }

    fn note_what_is_known(&mut self, mapping: u64, frame: &Frame) {
        let functions = shown_functions(frame, self.options);
        let index = usize::try_from(mapping).unwrap_or(0).checked_sub(1);
        if let Some(mapping) = index.and_then(|index| self.mappings.get_mut(index)) {
            mapping.has_functions |= !functions.is_empty();
            mapping.has_filenames |= functions.iter().any(|f| f.file.is_some());
            mapping.has_lines |= functions.iter().any(|f| f.line.is_some());
            mapping.has_inlines |= functions.len() > 1;
        }
    }

    /// A `Line` for each function of a frame.
    fn lines(&mut self, frame: &Frame) -> Vec<Message> {
        let mut lines = Vec::new();
        for function in shown_functions(frame, self.options) {
            let name = match frame.kind {
                FrameKind::Note => names::note(&function.name),
                FrameKind::Native | FrameKind::Jit | FrameKind::Interpreted(_) => {
                    names::symbol(frame, function, self.options.names)
                        .unwrap_or_else(|| names::unnamed(frame))
                }
            };
            let system_name = function.mangled.as_deref().unwrap_or(&function.name);
            let file = function.file.as_deref().unwrap_or("");
            let key = (
                self.string(&name),
                self.string(&names::printable(system_name)),
                self.string(&names::printable(file)),
            );
            let next = self.functions.len() as u64 + 1;
            let mut line = Message::new();
            line.number(1, *self.functions.entry(key).or_insert(next));
            line.number(2, u64::from(function.line.unwrap_or(0)));
            lines.push(line);
        }
        lines
    }

    /// Writes the tables into `profile`.
    pub(super) fn write(mut self, profile: &mut Message) {
        let mappings = std::mem::take(&mut self.mappings);
        for (mapping, id) in mappings.iter().zip(1..) {
            let message = self.mapping_message(mapping, id);
            profile.message(3, message);
        }
        for location in std::mem::take(&mut self.encoded_locations) {
            profile.message(4, location);
        }
        for (&(name, system_name, file), id) in by_id(&self.functions) {
            let mut message = Message::new();
            message.number(1, id);
            message.number(2, name);
            message.number(3, system_name);
            message.number(4, file);
            profile.message(5, message);
        }
        for (text, _) in by_id(&self.strings) {
            profile.text(6, text);
        }
    }

    fn mapping_message(&mut self, mapping: &Mapping, id: u64) -> Message {
        let mut message = Message::new();
        message.number(1, id);
        let path = match &mapping.module {
            Some(module) => {
                message.number(2, module.start);
                message.number(3, module.end);
                message.number(4, module.file_offset);
                if !module.build_id.is_empty() {
                    message.number(6, self.string(&hex_bytes(&module.build_id)));
                }
                &module.path
            }
            None => &self.header.executable,
        };
        let path = names::printable(path.strip_suffix(" (deleted)").unwrap_or(path));
        message.number(5, self.string(&path));
        message.flag(7, mapping.has_functions);
        message.flag(8, mapping.has_filenames);
        message.flag(9, mapping.has_lines);
        message.flag(10, mapping.has_inlines);
        message
    }
}

/// Entries in the order of their ids.
fn by_id<K>(ids: &FxHashMap<K, u64>) -> Vec<(&K, u64)> {
    let entries: Vec<(&K, u64)> = ids.iter().map(|(entry, &id)| (entry, id)).collect();
    sorted(&entries, &|a, b| a.1.cmp(&b.1))
}
