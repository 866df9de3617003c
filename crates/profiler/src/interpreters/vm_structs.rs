//! HotSpot's description of its own structures, which it exports for debuggers
//! (`gHotSpotVMStructs`, `gHotSpotVMTypes`).

use super::exported::Exported;
use rustc_hash::FxHashMap;

/// What the object exports if it has a HotSpot.
pub const STRUCTURES: &str = "gHotSpotVMStructs";
const TYPES: &str = "gHotSpotVMTypes";
/// More entries than there are.
const MAX_ENTRIES: u64 = 10_000;
const MAX_NAME: usize = 64;

/// Fields and sizes of some types.
#[derive(Debug, Default)]
pub struct VmStructs {
    /// The place of a field in its structure, or the address of a static one.
    fields: FxHashMap<String, u64>,
    sizes: FxHashMap<String, u64>,
}

impl VmStructs {
    /// Those of `wanted` types. `None`: it is not there yet.
    pub fn read(exported: &Exported, wanted: &[&str]) -> Option<VmStructs> {
        let source = Source(exported);
        let mut all = VmStructs::default();
        let entry = |part: &str| source.variable(&format!("gHotSpotVMStructEntry{part}"));
        let [type_name, field_name] = [entry("TypeNameOffset")?, entry("FieldNameOffset")?];
        let [is_static, offset, address] =
            [entry("IsStaticOffset")?, entry("OffsetOffset")?, entry("AddressOffset")?];
        // Fields of a type follow one another, with one and the same text for its name.
        let (mut name_at, mut kind) = (0, String::new());
        for at in source.entries(STRUCTURES, entry("ArrayStride")?, type_name)? {
            let of_entry = source.word(at + type_name)?;
            if of_entry != name_at {
                (name_at, kind) = (of_entry, source.text(of_entry)?);
            }
            if wanted.contains(&kind.as_str()) {
                let field = source.text(source.word(at + field_name)?)?;
                let is_static = source.word(at + is_static)? as u32 != 0;
                let value = source.word(at + if is_static { address } else { offset })?;
                all.fields.insert(format!("{kind}.{field}"), value);
            }
        }
        let entry = |part: &str| source.variable(&format!("gHotSpotVMTypeEntry{part}"));
        let [type_name, size] = [entry("TypeNameOffset")?, entry("SizeOffset")?];
        for at in source.entries(TYPES, entry("ArrayStride")?, type_name)? {
            let kind = source.text(source.word(at + type_name)?)?;
            if wanted.contains(&kind.as_str()) {
                all.sizes.insert(kind, source.word(at + size)?);
            }
        }
        Some(all)
    }

    /// The place of the first of these fields (`Type.field`) that there is; or the missing one.
    pub fn field(&self, names: &[&str]) -> Result<u64, String> {
        let found = names.iter().find_map(|name| self.fields.get(*name)).copied();
        found.ok_or_else(|| format!("{} is missing", names.first().unwrap_or(&"")))
    }

    /// The bytes of a structure; or that it is missing.
    pub fn size(&self, kind: &str) -> Result<u64, String> {
        self.sizes.get(kind).copied().ok_or_else(|| format!("{kind} is missing"))
    }
}

/// The memory in which it is.
struct Source<'e>(&'e Exported);

impl Source<'_> {
    fn word(&self, address: u64) -> Option<u64> {
        self.0.copy(address).map(u64::from_ne_bytes)
    }

    fn variable(&self, name: &str) -> Option<u64> {
        self.word(self.0.find(name)?.start)
    }

    /// Where the entries of a list are; the last one has no type.
    fn entries(&self, list: &str, stride: u64, type_name: u64) -> Option<Vec<u64>> {
        let start = self.variable(list).filter(|&start| start != 0)?;
        let all = (0..MAX_ENTRIES).map(|entry| start.wrapping_add(entry * stride));
        Some(all.take_while(|at| self.word(at + type_name).is_some_and(|name| name != 0)).collect())
    }

    fn text(&self, address: u64) -> Option<String> {
        let mut text = vec![];
        while text.len() < MAX_NAME {
            let part: [u8; 8] = self.0.copy(address.checked_add(text.len() as u64)?)?;
            let end = part.iter().position(|&byte| byte == 0);
            text.extend_from_slice(part.get(..end.unwrap_or(part.len()))?);
            if end.is_some() {
                break;
            }
        }
        String::from_utf8(text).ok()
    }
}
