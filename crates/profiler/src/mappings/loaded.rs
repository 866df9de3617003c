//! One loaded object: where its code is, its unwind table, and where its names are.

use super::Symbols;
use super::debug_frame::{self, DebugFrame};
use super::origin::Origin;
use super::reader::{MAX_BYTES, Reader, frame_header};
use super::unwind_info::UnwindInfo;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use swipr_formats::model::Module;
use swipr_os::maps::{self, Mapping};
use swipr_os::objects::{self, Object, Segment};
use swipr_symbols::error::Error;
use swipr_symbols::rows::{DebugFrameInput, UnwindInput, build_table};
use swipr_symbols::symbolizer::ObjectKey;
use swipr_symbols::table::OwnedTable;
use swipr_unwind::published;

/// A loaded object.
#[derive(Clone, Debug)]
pub struct LoadedObject {
    source: Object,
    origin: Origin,
    text: Range<u64>,
    module: Arc<Module>,
    symbols: Arc<Symbols>,
    unwind_info: Option<Arc<UnwindInfo>>,
}

impl LoadedObject {
    /// Reads what is needed of a loaded object that is in one of `maps`; `None` if it has no code.
    /// `any_wanted` is set once it wants a table that it has not.
    pub fn load(
        object: &Object,
        maps: &[Mapping],
        memory_file: i32,
        any_wanted: &Arc<AtomicBool>,
    ) -> Option<LoadedObject> {
        let reader = Reader { memory_file };
        let code = || object.segments.iter().filter(|segment| segment.is_code());
        let first = code().min_by_key(|segment| segment.address)?;
        let text = first.address..code().map(|segment| segment.range().end).max()?;
        let vdso = objects::vdso_address();
        let is_vdso = vdso != 0 && object.segments.iter().any(|segment| segment.range().contains(&vdso));
        let (origin, build_id) = reader.identity(object, maps);
        let path = if is_vdso { "[vdso]" } else { &*origin.path };
        let image = if is_vdso { reader.image(object, vdso) } else { None };
        let main = reader.main_function(&text).map(|(address, _)| address);
        let header = frame_header(object).map_or(0, |segment| segment.address);
        let sections = reader.unwind_sections(object).filter(|sections| sections.are_searchable(main));
        let without_table = |it| UnwindInfo::without_table(it, text.clone(), header, any_wanted);
        let unwind_info = sections.map(|it| Arc::new(without_table(it)));
        let key = match image {
            Some(_) => ObjectKey { image, ..ObjectKey::at(path, &build_id) },
            None => ObjectKey { loaded: Some(object.bias), ..origin.key(&build_id) },
        };
        let module = Module {
            path: path.to_owned(),
            start: text.start,
            end: text.end,
            file_offset: first.offset,
            base: object.base(),
            build_id,
        };
        let loaded = LoadedObject {
            source: object.clone(),
            text,
            module: Arc::new(module),
            symbols: Arc::new(Symbols { key, bias: object.bias }),
            unwind_info,
            origin,
        };
        Some(if loaded.unwind_info.is_some() { loaded } else { loaded.with_table(memory_file) })
    }

    /// The same, with an unwind table, if one can be built.
    pub fn with_table(&self, memory_file: i32) -> LoadedObject {
        let reader = Reader { memory_file };
        let text = &self.text;
        let main = reader.main_function(text);
        let main = main.as_ref().map(|(address, code)| (*address, code.as_slice()));
        let sections = reader.unwind_sections(&self.source);
        let from_memory = |debug_frame: Option<DebugFrameInput<'_>>| {
            sections.as_ref().and_then(|it| it.table(text, main, debug_frame))
        };
        let (origin, build_id, bias) = (&self.origin, &self.module.build_id, self.source.bias);
        let table = match from_memory(None) {
            Some(table) if self.symbols.key.image.is_none() && debug_frame::is_wanted(&table) => {
                let debug_frame = DebugFrame::of_object(origin, build_id);
                let better = debug_frame.and_then(|frame| from_memory(Some(frame.input(bias))));
                better.or(Some(table))
            }
            Some(table) => Some(table),
            None => table_from_file(bias, origin, build_id, text),
        };
        let header = frame_header(&self.source).map_or(0, |segment| segment.address);
        let unwind_info = table.map(|table| Arc::new(UnwindInfo::new(table, text.clone(), header)));
        LoadedObject { unwind_info, ..self.clone() }
    }

    /// Code of a file that the loader does not list: not yet, or because it is in a namespace of
    /// its own (dlmopen(3)), or because the program has mapped it itself. `None`: no object file,
    /// or one without code at this place.
    pub fn of_mapping(mapping: &Mapping) -> Option<LoadedObject> {
        let origin = Origin::of_mapping(mapping)?.dated();
        let text = mapping.low..mapping.high;
        let bytes = mapping.high - mapping.low;
        // A deleted file that cannot be opened is more likely memory of a JIT compiler than an
        // object: closures of libffi and doubly mapped code are such files.
        let (bias, base, build_id) = match origin.open(&[]) {
            Ok(file) => {
                let address = file.code_address(mapping.offset..mapping.offset.checked_add(bytes)?)?;
                let bias = mapping.low.wrapping_sub(address);
                let base = bias.wrapping_add(file.first_address().unwrap_or(0));
                (bias, base, file.build_id().unwrap_or_default().to_vec())
            }
            Err(Error::Malformed(_) | Error::NotAFile(_)) => return None,
            Err(_) if mapping.path.ends_with(maps::DELETED) => return None,
            Err(_) => {
                let base = mapping.low.wrapping_sub(mapping.offset);
                (base, base, vec![])
            }
        };
        let table = table_from_file(bias, &origin, &build_id, &text);
        // Where such a file's other parts are mapped is not known.
        let unwind_info = table.map(|table| Arc::new(UnwindInfo::new(table, text.clone(), 0)));
        let (kind, flags) = (libc::PT_LOAD, libc::PF_X);
        let code = Segment { kind, flags, address: mapping.low, bytes, offset: mapping.offset };
        let symbols = Symbols { key: origin.key(&build_id), bias };
        let module = Module {
            path: origin.path.clone(),
            start: text.start,
            end: text.end,
            file_offset: mapping.offset,
            base,
            build_id,
        };
        Some(LoadedObject {
            source: Object { name: origin.path.clone(), bias, segments: vec![code] },
            origin,
            text,
            module: Arc::new(module),
            symbols: Arc::new(symbols),
            unwind_info,
        })
    }

    /// Whether this is the object that the loader describes so.
    pub fn is(&self, object: &Object) -> bool {
        self.source == *object
    }

    /// How the loader describes it, and its code.
    pub fn source(&self) -> (&Object, Range<u64>) {
        (&self.source, self.text.clone())
    }

    /// Whether its file is the same as when it was loaded: the loader may have unloaded it and
    /// loaded another file of the same size and name to the same place.
    pub fn is_unchanged(&self, maps: &[Mapping], memory_file: i32) -> bool {
        let (origin, build_id) = Reader { memory_file }.identity(&self.source, maps);
        origin == self.origin && build_id == self.module.build_id
    }

    /// From the first to behind the last byte of code.
    pub fn text(&self) -> &Range<u64> {
        &self.text
    }

    /// Its executable memory.
    pub fn code(&self) -> impl Iterator<Item = published::Range> + '_ {
        let code = self.source.segments.iter().filter(|segment| segment.is_code());
        code.map(|segment| published::Range { low: segment.address, high: segment.range().end })
    }

    /// What it is called in the output.
    pub fn module(&self) -> &Arc<Module> {
        &self.module
    }

    /// Where its names are.
    pub fn symbols(&self) -> &Arc<Symbols> {
        &self.symbols
    }

    /// What its code is unwound with.
    pub fn unwind_info(&self) -> Option<&Arc<UnwindInfo>> {
        self.unwind_info.as_ref()
    }
}

/// The table from the file: for objects whose memory cannot be copied or that have no
/// `.eh_frame_hdr`, and for mapped files.
fn table_from_file(bias: u64, origin: &Origin, build_id: &[u8], text: &Range<u64>) -> Option<OwnedTable> {
    let file = origin.open(build_id).ok()?;
    let section = file.section(".eh_frame");
    let read = section.and_then(|section| Some((section.address, file.bytes(section, MAX_BYTES).ok()?)));
    let (address, bytes) = read.unwrap_or_default();
    let with = |debug_frame: Option<DebugFrameInput<'_>>| {
        let input = UnwindInput {
            text: text.clone(),
            eh_frame_hdr: None,
            eh_frame: (bias.wrapping_add(address), &bytes),
            debug_frame,
            main: None,
            aarch64: cfg!(target_arch = "aarch64"),
        };
        build_table(&input).ok()
    };
    let table = with(None);
    if table.as_ref().is_some_and(|table| !debug_frame::is_wanted(table)) {
        return table;
    }
    let debug_frame = DebugFrame::of_object(origin, build_id);
    debug_frame.and_then(|frame| with(Some(frame.input(bias)))).or(table)
}
