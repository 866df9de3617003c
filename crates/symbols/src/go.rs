//! Go's assembly that changes stacks. Its unwind information describes it as if it did not.

use crate::elf::ElfFile;
use crate::symbols::addresses_of;
use swipr_unwind::rule::Rule;

/// They call others, or the kernel's functions, on the thread's own stack. Their own frame's
/// pointer, or their caller's, is in its register. Before Go 1.17 without the suffix; since then
/// that is the name of a wrapper.
const SWITCHES: [[&str; 2]; 7] = [
    ["runtime.systemstack.abi0", "runtime.systemstack"],
    ["runtime.asmcgocall.abi0", "runtime.asmcgocall"],
    ["runtime.nanotime1.abi0", "runtime.nanotime1"],
    ["runtime.walltime.abi0", "runtime.walltime"],
    ["time.now", "time.now"],
    ["runtime.callCgoMmap.abi0", "runtime.callCgoMmap"],
    ["runtime.callCgoMunmap.abi0", "runtime.callCgoMunmap"],
];
/// C calls Go. Its return address is made up: the goroutine's stack continues there.
const CALLED_BY_C: [&str; 2] = ["runtime.cgocallback.abi0", "runtime.cgocallback"];
/// The first version of Go, 1.21, whose made-up address is described.
const DESCRIBED: u32 = 21;
/// The section with the version has all modules' names, too. Larger ones are not read.
const MAX_BYTES: u64 = 1 << 20;

/// Where such functions begin, in the object's own numbering, and the rules that hold in them.
/// `names` is the object, or its debug file.
pub fn stack_switches(object: &ElfFile, names: &ElfFile) -> Vec<(u64, Rule)> {
    let Some(section) = object.section(".go.buildinfo") else { return vec![] };
    let minor = minor_version(&object.bytes(section, MAX_BYTES).unwrap_or_default());
    let mut found = with_rule(names, SWITCHES, Rule::OTHER_STACK);
    if minor.is_none_or(|minor| minor < DESCRIBED) {
        found.append(&mut with_rule(names, [CALLED_BY_C], Rule::END));
    }
    found
}

fn with_rule<const N: usize>(file: &ElfFile, names: [[&str; 2]; N], rule: Rule) -> Vec<(u64, Rule)> {
    let with_suffix = addresses_of(file, names.map(|[with, _]| with));
    let without = addresses_of(file, names.map(|[_, without]| without));
    let addresses = with_suffix.into_iter().zip(without).filter_map(|(with, without)| with.or(without));
    addresses.map(|address| (address, rule)).collect()
}

/// Of `go1.21.13`. Before Go 1.18 it is elsewhere.
fn minor_version(text: &[u8]) -> Option<u32> {
    let at = text.windows(4).position(|part| part == b"go1.")?;
    let digits = text.get(at + 4..)?.iter().take_while(|digit| digit.is_ascii_digit());
    std::str::from_utf8(&digits.copied().collect::<Vec<u8>>()).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_go_are_read() {
        assert_eq!(minor_version(b"\xff Go buildinf:\x08\x02\0\0\x08go1.19.8\x20path"), Some(19));
        assert_eq!([minor_version(b"go1."), minor_version(b"go1"), minor_version(b"")], [None; 3]);
        assert_eq!(minor_version(b"go1.99999999999"), None);
    }
}
