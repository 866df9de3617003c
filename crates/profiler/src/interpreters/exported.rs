//! Symbols that a loaded object exports, by the hash table that the loader uses (`DT_GNU_HASH`, or
//! the older `DT_HASH`), out of memory. Little is read for each look-up, however large the object
//! is.

use std::ops::Range;
use std::rc::Rc;
use swipr_os::objects::Object;
use swipr_unwind::memory::guarded_copy_or_file;

/// Entries of the dynamic section (elf(5)).
const DT_HASH: u64 = 4;
const DT_STRTAB: u64 = 5;
const DT_SYMTAB: u64 = 6;
const DT_GNU_HASH: u64 = 0x6fff_fef5;
/// Longer chains are damaged ones, and longer dynamic sections.
const MAX_STEPS: u64 = 10_000;
const MAX_DYNAMIC: u64 = 1 << 16;
const MAX_BLOOM_WORDS: u32 = 1 << 11;
const HEAD_BYTES: u64 = 16;

/// What the newer table begins with.
#[derive(Clone, Copy, Debug)]
struct Head {
    buckets: u32,
    /// The first symbol that is in it.
    first: u32,
    bloom_words: u32,
    shift: u32,
}

/// The tables of one object.
#[derive(Debug)]
pub struct Exported {
    bias: u64,
    strings: u64,
    symbols: u64,
    hashes: u64,
    /// The table's first numbers; `None`: it is the older one.
    head: Option<Head>,
    /// The table's Bloom filter, by which most names are not there; empty if it is large.
    bloom: Vec<u8>,
    /// The executable's, if that is another object.
    program: Option<Rc<Exported>>,
    memory_file: i32,
}

impl Exported {
    /// `None`: it has no such tables, or they cannot be read.
    pub fn of(object: &Object, memory_file: i32) -> Option<Exported> {
        let dynamic = object.segments.iter().find(|segment| segment.kind == libc::PT_DYNAMIC)?;
        let (bias, bloom) = (object.bias, Vec::new());
        let (strings, symbols, hashes) = (0, 0, 0);
        let (head, program) = (None, None);
        let mut found = Exported { bias, strings, symbols, hashes, head, bloom, program, memory_file };
        let mut is_older = true;
        let mut entries = vec![0; dynamic.bytes.min(MAX_DYNAMIC) as usize];
        let read = guarded_copy_or_file(dynamic.address, &mut entries, memory_file);
        for [tag, value] in entries.get(..read)?.as_chunks::<16>().0.iter().map(two) {
            // glibc adds the bias in memory, other loaders do not.
            let address = if value < object.base() { value.wrapping_add(object.bias) } else { value };
            match tag {
                0 => break,
                DT_STRTAB => found.strings = address,
                DT_SYMTAB => found.symbols = address,
                DT_GNU_HASH => (found.hashes, is_older) = (address, false),
                DT_HASH if is_older => found.hashes = address,
                _ => {}
            }
        }
        if !is_older {
            let [buckets, first, bloom_words, shift] = words(found.copy(found.hashes)?);
            found.head = Some(Head { buckets, first, bloom_words, shift });
            if bloom_words <= MAX_BLOOM_WORDS {
                let mut bloom = vec![0; bloom_words as usize * size_of::<u64>()];
                found.copy_into(found.hashes.checked_add(HEAD_BYTES)?, &mut bloom)?;
                found.bloom = bloom;
            }
        }
        (found.strings != 0 && found.symbols != 0 && found.hashes != 0).then_some(found)
    }

    /// The same in a program of which these are the tables.
    pub fn within(self, program: Option<Rc<Exported>>) -> Exported {
        Exported { program, ..self }
    }

    /// As it was given.
    pub fn memory_file(&self) -> i32 {
        self.memory_file
    }

    /// Memory of this process.
    pub fn copy<const N: usize>(&self, address: u64) -> Option<[u8; N]> {
        let mut bytes = [0; N];
        self.copy_into(address, &mut bytes).map(|()| bytes)
    }

    /// The same, as much as there is room for.
    pub fn copy_into(&self, address: u64, bytes: &mut [u8]) -> Option<()> {
        (guarded_copy_or_file(address, bytes, self.memory_file) == bytes.len()).then_some(())
    }

    /// Where the function or variable of this name is. A program that uses a variable directly has
    /// its own copy, of the same size, and the object uses that one, too (`R_X86_64_COPY`).
    pub fn find(&self, name: &str) -> Option<Range<u64>> {
        let own = self.find_own(name)?;
        let bytes = own.end - own.start;
        let copy = self.program.as_ref().and_then(|program| program.find_own(name));
        Some(copy.filter(|copy| bytes > 0 && copy.end - copy.start == bytes).unwrap_or(own))
    }

    fn find_own(&self, name: &str) -> Option<Range<u64>> {
        match self.head {
            None => self.find_by_older_table(name),
            Some(head) => self.find_by_table(head, name),
        }
    }

    fn find_by_older_table(&self, name: &str) -> Option<Range<u64>> {
        let hash = name.bytes().fold(0u32, |hash, byte| {
            let hash = (hash << 4).wrapping_add(byte.into());
            (hash ^ (hash & 0xf000_0000) >> 24) & 0x0fff_ffff
        });
        let number = |at: u64| self.copy(self.hashes.checked_add(4 * at)?).map(u32::from_ne_bytes);
        let buckets = number(0)?;
        let mut symbol = number(2 + u64::from(hash.checked_rem(buckets)?))?;
        for _ in 0..MAX_STEPS {
            if symbol == 0 {
                return None;
            }
            if let Some(range) = self.symbol(symbol.into(), name) {
                return Some(range);
            }
            symbol = number(2 + u64::from(buckets) + u64::from(symbol))?;
        }
        None
    }

    fn find_by_table(&self, head: Head, name: &str) -> Option<Range<u64>> {
        let Head { buckets, first, bloom_words, shift } = head;
        let hash = name.bytes().fold(5381u32, |hash, byte| hash.wrapping_mul(33).wrapping_add(byte.into()));
        let bloom = self.hashes + HEAD_BYTES;
        let at = (hash / 64).checked_rem(bloom_words)?;
        let word = match self.bloom.as_chunks().0.get(at as usize) {
            Some(word) => *word,
            None => self.copy(bloom + 8 * u64::from(at))?,
        };
        let word = u64::from_ne_bytes(word);
        if word >> (hash % 64) & 1 == 0 || word >> (hash.checked_shr(shift)? % 64) & 1 == 0 {
            return None;
        }
        let bucket_table = bloom + 8 * u64::from(bloom_words);
        let bucket = bucket_table + 4 * u64::from(hash.checked_rem(buckets)?);
        let start = u64::from(u32::from_ne_bytes(self.copy(bucket)?));
        let chain = bucket_table + 4 * u64::from(buckets);
        for symbol in start..start + MAX_STEPS {
            let at = 4 * symbol.checked_sub(u64::from(first))?;
            let found = u32::from_ne_bytes(self.copy(chain.checked_add(at)?)?);
            if found | 1 == hash | 1
                && let Some(range) = self.symbol(symbol, name)
            {
                return Some(range);
            }
            if found & 1 == 1 {
                return None;
            }
        }
        None
    }

    /// The symbol with this number, if that is its name and it is defined here.
    fn symbol(&self, number: u64, name: &str) -> Option<Range<u64>> {
        let symbol: [u8; 24] = self.copy(self.symbols.checked_add(24 * number)?)?;
        let [name_at, _, value, size] = symbol_parts(&symbol)?;
        let mut bytes = vec![0; name.len() + 1];
        let read = guarded_copy_or_file(self.strings.checked_add(name_at)?, &mut bytes, self.memory_file);
        let is_it = read == bytes.len() && bytes.strip_suffix(&[0]) == Some(name.as_bytes());
        let start = value.wrapping_add(self.bias);
        (is_it && value != 0).then(|| start..start.saturating_add(size))
    }
}

/// Four numbers in a row.
fn words(bytes: [u8; 16]) -> [u32; 4] {
    [0, 32, 64, 96].map(|shift| (u128::from_le_bytes(bytes) >> shift) as u32)
}

/// The two words of an entry of the dynamic section.
fn two(entry: &[u8; 16]) -> [u64; 2] {
    let [low, high] = [0, 64].map(|shift| (u128::from_le_bytes(*entry) >> shift) as u64);
    [low, high]
}

/// `st_name`, `st_shndx` and the like as one number, `st_value`, `st_size` of an `Elf64_Sym`.
fn symbol_parts(symbol: &[u8; 24]) -> Option<[u64; 4]> {
    let words = symbol.as_chunks::<8>().0;
    let [head, value, size] = [0, 1, 2].map(|at| words.get(at).map(|word| u64::from_le_bytes(*word)));
    Some([head? & 0xffff_ffff, head? >> 32, value?, size?])
}

#[cfg(test)]
mod tests {
    use super::*;
    use swipr_os::{objects, process};

    #[test]
    fn symbols_of_the_c_library_are_found_where_the_loader_finds_them() {
        swipr_unwind::memory::set_process(process::pid() as i32);
        let list = objects::list().unwrap();
        let found = |name: &str| -> Vec<Range<u64>> {
            let exported = list.iter().filter_map(|object| Exported::of(object, -1));
            exported.filter_map(|exported| exported.find(name)).collect()
        };
        for (name, address) in
            [("qsort", libc::qsort as *const () as u64), ("waitpid", libc::waitpid as *const () as u64)]
        {
            let ranges = found(name);
            assert!(ranges.iter().any(|range| range.start == address && !range.is_empty()), "{ranges:x?}");
        }
        assert_eq!(found("no_such_function"), []);
    }

    /// Regression: nothing was found in objects without the newer table.
    #[test]
    fn both_tables_lead_to_the_same_symbols() {
        swipr_unwind::memory::set_process(process::pid() as i32);
        let list = objects::list().unwrap();
        // The kernel's object has both.
        let kernels = list.iter().filter_map(|object| Some((object, Exported::of(object, -1)?)));
        let mut kernels = kernels.filter(|(_, exported)| exported.find("__vdso_getcpu").is_some());
        let (object, newer) = kernels.next_back().expect("the kernel's object");
        let dynamic = object.segments.iter().find(|segment| segment.kind == libc::PT_DYNAMIC).unwrap();
        let mut entries =
            (0..dynamic.bytes / 16).map(|at| two(&newer.copy(dynamic.address + 16 * at).unwrap()));
        let [_, hashes] = entries.find(|[tag, _]| *tag == DT_HASH).expect("an older table");
        let hashes = if hashes < object.base() { hashes + object.bias } else { hashes };
        let older = Exported { hashes, head: None, ..Exported::of(object, -1).unwrap() };
        for name in ["__vdso_getcpu", "__vdso_clock_gettime", "clock_gettime", "no_such_function", ""] {
            assert_eq!(older.find(name), newer.find(name), "{name}");
        }
    }
}
