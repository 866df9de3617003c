//! Finds a V8 in a loaded object, and what is read of it. Node.js and others that embed it export
//! constants that describe its heap, for debuggers (`v8dbg_*`).

mod compiled;

use super::exported::Exported;
use super::found::{FoundRuntime, NotRead};
use std::ops::Range;
use swipr_runtimes::merge::{RuntimeCode, RuntimeLanguage};
use swipr_runtimes::runtime::Runtime;
use swipr_runtimes::v8::V8Layout;

/// What the object exports if it has a V8 that describes itself.
pub const FUNCTION_TYPE: &str = "v8dbg_type_JSFunction__JS_FUNCTION_TYPE";
/// Before versions that tell the last type of functions, there are so many behind the first one:
/// constructors of the language's own classes.
const MORE_FUNCTIONS: u16 = 16;
/// What Node.js exports. It asks V8 for the positions of all instructions; others get those of
/// calls.
const NODE: &str = "node_module_register";
/// Bytes of a pointer to an object, where pointers are not compressed.
const WHOLE: i32 = 8;

/// The types of frames of V8's own functions. Code that is made while the program runs has others.
const OWN_FRAMES: [&str; 10] = [
    "Entry",
    "ConstructEntry",
    "Exit",
    "BuiltinExit",
    "Stub",
    "Internal",
    "Construct",
    "FastConstruct",
    "Builtin",
    "TurbofanStubWithContext",
];

/// Its constants.
struct Constants<'e>(&'e Exported);

impl Constants<'_> {
    /// The constant of the first of these names that there is; or which one is missing.
    fn any<T: TryFrom<i32>>(&self, names: &[&str]) -> Result<T, String> {
        let find = |name: &&str| self.0.find(&format!("v8dbg_{name}"));
        let found = names.iter().find_map(find).and_then(|at| self.0.copy(at.start)).map(i32::from_ne_bytes);
        let missing = || format!("v8dbg_{} is missing", names.first().unwrap_or(&""));
        T::try_from(found.ok_or_else(missing)?).map_err(|_| missing())
    }

    fn of<T: TryFrom<i32>>(&self, name: &str) -> Result<T, String> {
        self.any(&[name])
    }

    /// Where the object has that field; later versions name its type otherwise.
    fn field(&self, name: &str, type_before: &str, types_after: &[&str]) -> Result<u64, String> {
        let types = std::iter::once(&type_before).chain(types_after);
        let names: Vec<String> = types.map(|kind| format!("class_{name}__{kind}")).collect();
        self.any(&names.iter().map(String::as_str).collect::<Vec<_>>())
    }
}

/// What is read of the one that the object has; or why it is not read.
pub fn find(exported: &Exported, text: Range<u64>) -> Result<FoundRuntime, NotRead> {
    let name = name(exported);
    let mut layout = layout(&Constants(exported)).map_err(|why| NotRead::because(&name, &why))?;
    let distances = exported.find(NODE).and_then(|_| compiled::distances(version(exported)?));
    layout.compiled = distances.and_then(|distances| compiled::layout(&Constants(exported), distances));
    let code = RuntimeCode { object: text, language: RuntimeLanguage::JavaScript, ..RuntimeCode::default() };
    Ok(FoundRuntime { runtime: Runtime::V8(layout), code, name })
}

/// With the version, if it is exported.
fn name(exported: &Exported) -> String {
    version(exported).map_or("V8".to_owned(), |(major, minor)| format!("V8 {major}.{minor}"))
}

fn version(exported: &Exported) -> Option<(u32, u32)> {
    let number = |part: &str| {
        let at = exported.find(&format!("_ZN2v88internal7Version6{part}_E"))?;
        Some(u32::from_ne_bytes(exported.copy(at.start)?))
    };
    Some((number("major")?, number("minor")?))
}

/// A bit for each of those that this version has.
fn own_frames(constants: &Constants<'_>) -> u64 {
    let number = |kind: &&str| constants.of::<u32>(&format!("frametype_{kind}Frame")).ok();
    let numbers = OWN_FRAMES.iter().filter_map(number).filter(|&number| number < 64);
    numbers.fold(0, |bits, number| bits | 1 << number)
}

fn layout(constants: &Constants<'_>) -> Result<V8Layout, String> {
    let of_tagged = |kind: &str| format!("Tagged_{kind}_");
    let (object, heap_object) = (of_tagged("Object"), of_tagged("HeapObject"));
    if constants.of::<i32>("TaggedSize")? != WHOLE {
        return Err("its pointers are compressed".to_owned());
    }
    let first = constants.any(&["FirstJSFunctionType", "type_JSFunction__JS_FUNCTION_TYPE"])?;
    let last = constants.of("LastJSFunctionType").unwrap_or(first + MORE_FUNCTIONS);
    let field = |name: &str, kind: &str| constants.field(name, kind, &[]);
    Ok(V8Layout {
        frame_context: constants.any::<i32>(&["off_fp_context_or_frame_type", "off_fp_context"])?.into(),
        frame_function: constants.of::<i32>("off_fp_function")?.into(),
        own_frames: own_frames(constants),
        map: field("HeapObject__map", "Map")?,
        map_type: field("Map__instance_type", "uint16_t")?,
        function_shared: constants.field(
            "JSFunction__shared",
            "SharedFunctionInfo",
            &["Tagged_SharedFunctionInfo_"],
        )?,
        shared_name: constants.field(
            "SharedFunctionInfo__name_or_scope_info",
            "Object",
            &[&object, "Tagged_NameOrScopeInfoT_"],
        )?,
        shared_script: constants
            .field("SharedFunctionInfo__script", "Object", &[&heap_object, &object])
            .or_else(|_| field("SharedFunctionInfo__script_or_debug_info", "HeapObject"))?,
        script_name: field("Script__name", "Object")?,
        script_source: field("Script__source", "Object")?,
        string_length: field("String__length", "int32_t")?,
        string_text: field("SeqOneByteString__chars", "char")?,
        wide_string_text: field("SeqTwoByteString__chars", "char")?,
        cons_first: field("ConsString__first", "String")?,
        cons_second: field("ConsString__second", "String")?,
        slice_parent: field("SlicedString__parent", "String")?,
        slice_offset: field("SlicedString__offset", "SMI")?,
        thin_actual: field("ThinString__actual", "String")?,
        scope_locals: constants.of("scopeinfo_idx_ncontextlocals")?,
        scope_rest: constants.of("scopeinfo_idx_first_vars")?,
        type_map: constants.of("type_Map__MAP_TYPE")?,
        types_function: (first, last),
        type_shared: constants.of("type_SharedFunctionInfo__SHARED_FUNCTION_INFO_TYPE")?,
        type_script: constants.of("type_Script__SCRIPT_TYPE")?,
        type_scope: constants.of("type_ScopeInfo__SCOPE_INFO_TYPE")?,
        first_other_type: constants.of("FirstNonstringType")?,
        one_byte: constants.of("StringEncodingMask")?,
        representation: constants.of("StringRepresentationMask")?,
        cons: constants.of("ConsStringTag")?,
        sliced: constants.of("SlicedStringTag")?,
        thin: constants.of("ThinStringTag")?,
        sequential: constants.of("SeqStringTag")?,
        compiled: None,
    })
}
