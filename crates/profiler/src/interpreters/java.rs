//! Finds a HotSpot in a loaded object, and what is read of it.

use super::exported::Exported;
use super::found::{FoundRuntime, NotRead};
use super::vm_structs::VmStructs;
use std::ops::Range;
use swipr_runtimes::java::compiled::{CodePart, JavaCodeLayout};
use swipr_runtimes::java::{JavaLayout, SourceFile};
use swipr_runtimes::merge::{RuntimeCode, RuntimeLanguage};
use swipr_runtimes::runtime::Runtime;
use swipr_unwind::code_cache::{CodeCache, CodeHeap, CodeStart, HEAPS};
use swipr_unwind::published;

/// The types whose fields are read.
const TYPES: [&str; 20] = [
    "AbstractInterpreter",
    "Abstract_VM_Version",
    "CodeBlob",
    "CodeCache",
    "CodeHeap",
    "CompiledMethod",
    "ConstMethod",
    "ConstantPool",
    "GenericGrowableArray",
    "GrowableArray<int>",
    "GrowableArrayBase",
    "HeapBlock",
    "InstanceKlass",
    "Klass",
    "Method",
    "StubQueue",
    "StubRoutines",
    "Symbol",
    "VirtualSpace",
    "nmethod",
];
/// Before this version numbers are written with bytes that are 0.
const WITHOUT_ZERO: u32 = 20;
/// The versions whose compiled code is described as it is read here.
const VERSIONS: [std::ops::RangeInclusive<u32>; 3] = [8..=8, 11..=22, 25..=27];
/// Before this version the interpreter's frames have a word less.
const WITH_MIRROR: u32 = 9;

/// Where a piece of code says where callees return to once its method is not valid any more: by
/// distances, in 8, in versions without `CompiledMethod`, and from 26 on; or by addresses.
const HANDLER_DISTANCES: [[&str; 2]; 3] = [
    ["nmethod._deoptimize_offset", "nmethod._deoptimize_mh_offset"],
    ["nmethod._deopt_handler_offset", "nmethod._deopt_mh_handler_offset"],
    ["nmethod._deopt_handler_entry_offset"; 2],
];
const HANDLER_ADDRESSES: [&str; 2] =
    ["CompiledMethod._deopt_handler_begin", "CompiledMethod._deopt_mh_handler_begin"];

/// What is read of the one that the object has; or why it is not read.
pub fn find(exported: &Exported, text: Range<u64>) -> Result<FoundRuntime, NotRead> {
    let structs = VmStructs::read(exported, &TYPES).ok_or(NotRead::NotYet)?;
    let found = Structures { exported, structs };
    let version = found.version().ok_or(NotRead::NotYet)?;
    let name = format!("HotSpot {version}");
    let code_cache = found.code_cache().map_err(|why| NotRead::because(&name, &why))?;
    let code_cache = code_cache.ok_or(NotRead::NotYet)?;
    let layout = found.layout(code_cache, version).map_err(|why| NotRead::because(&name, &why))?;
    let heaps = || code_cache.heaps.iter().filter(|heap| heap.memory.low != 0);
    let low = heaps().map(|heap| heap.memory.low).min().unwrap_or(0);
    let code = RuntimeCode {
        evaluator: code_cache.interpreter.low..code_cache.interpreter.high,
        cold_part: low..heaps().map(|heap| heap.memory.high).max().unwrap_or(0),
        object: text,
        language: RuntimeLanguage::Java,
        ..RuntimeCode::default()
    };
    Ok(FoundRuntime { runtime: Runtime::Java(layout), code, name })
}

struct Structures<'e> {
    exported: &'e Exported,
    structs: VmStructs,
}

impl Structures<'_> {
    fn word(&self, address: u64) -> Option<u64> {
        self.exported.copy(address).map(u64::from_ne_bytes)
    }

    fn half(&self, address: u64) -> Option<u32> {
        self.exported.copy(address).map(u32::from_ne_bytes)
    }

    fn field(&self, name: &str) -> Result<u64, String> {
        self.structs.field(&[name])
    }

    /// `None`: it has not started.
    fn version(&self) -> Option<u32> {
        let version = self.half(self.field("Abstract_VM_Version._vm_major_version").ok()?);
        version.filter(|&version| version != 0).map(|version| if self.is_8() { 8 } else { version })
    }

    /// Up to 8, it had one heap, and HotSpot's own versions were others.
    fn is_8(&self) -> bool {
        self.field("CodeCache._heap").is_ok()
    }

    /// `Ok(None)`: it has not started.
    fn code_cache(&self) -> Result<Option<CodeCache>, String> {
        let Some(interpreter) = self.interpreter()? else { return Ok(None) };
        let Some(heaps) = self.heaps()? else { return Ok(None) };
        let block_header = self.structs.size("HeapBlock")?;
        let complete = self.field("CodeBlob._frame_complete_offset")?;
        let code = match self.field("CodeBlob._code_offset") {
            Ok(at) => CodeStart::Distance(at),
            Err(_) => CodeStart::Address(self.field("CodeBlob._code_begin")?),
        };
        Ok(Some(CodeCache {
            heaps,
            interpreter,
            block_header,
            size: self.field("CodeBlob._size")?,
            name: self.field("CodeBlob._name")?,
            frame_size: self.field("CodeBlob._frame_size")?,
            frame_complete: complete,
            // Fields of two bytes lie in between those of four.
            is_short: complete % 4 != 0 || matches!(code, CodeStart::Distance(_)) && !self.is_8(),
            code,
            deoptimized: self.handlers()?,
            original_pc: self.field("nmethod._orig_pc_offset")?,
            call_stub: self.call_stub().unwrap_or(0),
        }))
    }

    /// Of methods, and of method handles; the newest versions have one for both.
    fn handlers(&self) -> Result<[CodeStart; 2], String> {
        let both = |names: &[&str; 2], start: fn(u64) -> CodeStart| {
            Ok::<_, String>([start(self.field(names[0])?), start(self.field(names[1])?)])
        };
        let distances = HANDLER_DISTANCES.iter().find_map(|names| both(names, CodeStart::Distance).ok());
        distances.map_or_else(|| both(&HANDLER_ADDRESSES, CodeStart::Address), Ok)
    }

    fn call_stub(&self) -> Option<u64> {
        self.word(self.field("StubRoutines._call_stub_return_address").ok()?)
    }

    fn interpreter(&self) -> Result<Option<published::Range>, String> {
        let [queue, buffer, limit] =
            ["AbstractInterpreter._code", "StubQueue._stub_buffer", "StubQueue._buffer_limit"]
                .map(|name| self.field(name));
        let (queue, buffer, limit) = (queue?, buffer?, limit?);
        let range = || {
            let queue = self.word(queue).filter(|&queue| queue != 0)?;
            let low = self.word(queue + buffer)?;
            Some(published::Range { low, high: low.checked_add(self.half(queue + limit)?.into())? })
        };
        Ok(range())
    }

    fn heaps(&self) -> Result<Option<[CodeHeap; HEAPS]>, String> {
        let space = self.field("CodeHeap._memory")?;
        let [low, high] =
            ["VirtualSpace._low_boundary", "VirtualSpace._high_boundary"].map(|name| self.field(name));
        let (low, high) = (low?, high?);
        let segments = self.field("CodeHeap._segmap")?;
        let shift = self.field("CodeHeap._log2_segment_size")?;
        let heap = |at: u64| {
            let memory =
                published::Range { low: self.word(at + space + low)?, high: self.word(at + space + high)? };
            let segments = self.word(at + segments + low)?;
            Some(CodeHeap { memory, segments, shift: self.half(at + shift)?.min(16) })
        };
        let mut heaps = [CodeHeap::NONE; HEAPS];
        if let Ok(only) = self.field("CodeCache._heap") {
            let only = || heap(self.word(only).filter(|&only| only != 0)?);
            heaps[0] = only().unwrap_or(CodeHeap::NONE);
            return Ok(Some(heaps).filter(|heaps| heaps[0] != CodeHeap::NONE));
        }
        let list = self.field("CodeCache._heaps")?;
        let length = self.structs.field(&["GrowableArrayBase._len", "GenericGrowableArray._len"])?;
        let data = self.field("GrowableArray<int>._data")?;
        let mut all = || {
            let list = self.word(list).filter(|&list| list != 0)?;
            let count = self.half(list + length)? as usize;
            for (place, number) in heaps.iter_mut().take(count).zip(0..) {
                *place = heap(self.word(self.word(list + data)? + 8 * number)?)?;
            }
            Some(heaps).filter(|_| count > 0)
        };
        Ok(all())
    }

    fn layout(&self, code_cache: CodeCache, version: u32) -> Result<JavaLayout, String> {
        let source_file = match self.field("ConstantPool._source_file_name_index") {
            Ok(at) => SourceFile::OfPool(at),
            Err(_) => SourceFile::OfClass(self.field("InstanceKlass._source_file_name_index")?),
        };
        Ok(JavaLayout {
            code_cache,
            code_method: self.structs.field(&["nmethod._method", "CompiledMethod._method"])?,
            frame_bytecode: if version < WITH_MIRROR { 7 * 8 } else { 8 * 8 },
            method_const: self.field("Method._constMethod")?,
            const_constants: self.field("ConstMethod._constants")?,
            const_bytes: self.structs.size("ConstMethod")?,
            const_size: self.field("ConstMethod._constMethod_size")?,
            const_code_size: self.field("ConstMethod._code_size")?,
            const_name: self.field("ConstMethod._name_index")?,
            const_flags: self.structs.field(&["ConstMethod._flags", "ConstMethod._flags._flags"])?,
            pool_bytes: self.structs.size("ConstantPool")?,
            pool_length: self.field("ConstantPool._length")?,
            pool_holder: self.field("ConstantPool._pool_holder")?,
            source_file,
            klass_name: self.field("Klass._name")?,
            symbol_length: self.field("Symbol._length")?,
            symbol_text: self.field("Symbol._body")?,
            is_without_zero: version >= WITHOUT_ZERO,
            compiled: self.compiled(version),
        })
    }

    /// `None`: it is not known how this version describes compiled code.
    fn compiled(&self, version: u32) -> Option<JavaCodeLayout> {
        VERSIONS.iter().find(|versions| versions.contains(&version))?;
        let field = |name: &str| self.field(name).ok();
        let any = |names: &[&str]| self.structs.field(names).ok();
        let id = field("nmethod._compile_id")?;
        let places = field("nmethod._scopes_pcs_offset")?;
        let Some(immutable) = field("nmethod._immutable_data") else {
            return Some(JavaCodeLayout {
                id,
                places: CodePart::Distance(places),
                places_end: CodePart::Distance(field("nmethod._dependencies_offset")?),
                descriptions: match any(&["CompiledMethod._scopes_data_begin", "nmethod._scopes_data_begin"])
                {
                    Some(address) => CodePart::Address(address),
                    None => CodePart::Distance(field("nmethod._scopes_data_offset")?),
                },
                methods: CodePart::Distance(field("nmethod._metadata_offset")?),
            });
        };
        let descriptions = CodePart::From(immutable, field("nmethod._scopes_data_offset")?);
        Some(JavaCodeLayout {
            id,
            places: CodePart::From(immutable, places),
            places_end: descriptions,
            descriptions,
            methods: CodePart::From(field("CodeBlob._mutable_data")?, field("CodeBlob._relocation_size")?),
        })
    }
}
