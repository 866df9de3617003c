use super::*;
use crate::symbols::{FoundSymbol, without_version};

fn table(candidates: &[(u64, u64, Rank, &str)]) -> SymbolTable {
    let mut table = SymbolTable::default();
    let mut list = Vec::new();
    for &(start, size, rank, name) in candidates {
        let name = table.names.keep(name).unwrap();
        list.push(Candidate {
            start,
            rank: Rank { is_unsized: size == 0, ..rank },
            size,
            section_end: 0x900,
            name,
        });
    }
    let this = ElfFile::open(&std::env::current_exe().unwrap(), u64::MAX).unwrap();
    table.settle(list, &this, 0);
    table
}

const GLOBAL: Rank = Rank { is_stub: false, is_untyped: false, binding: Binding::Global, is_unsized: false };
const LOCAL: Rank = Rank { binding: Binding::Local, ..GLOBAL };
const WEAK: Rank = Rank { binding: Binding::Weak, ..GLOBAL };
const LABEL: Rank = Rank { is_untyped: true, binding: Binding::Local, ..GLOBAL };

#[test]
fn an_address_behind_a_symbol_has_no_name() {
    let table = table(&[(0x100, 0x10, GLOBAL, "a"), (0x200, 0, GLOBAL, "b"), (0x300, 8, GLOBAL, "c")]);
    let name = |address| table.find(address).map_or("none".into(), |found| found.name.into_owned());
    assert_eq!(name(0xff), "none");
    assert_eq!(name(0x10f), "a");
    assert_eq!(name(0x110), "none");
    assert_eq!(name(0x2ff), "b");
    assert_eq!(name(0x307), "c");
    assert_eq!(name(0x308), "none");
}

#[test]
fn global_names_win_over_weak_and_these_over_local() {
    let table = table(&[
        (1, 4, WEAK, "weak"),
        (1, 4, LOCAL, "local"),
        (1, 4, GLOBAL, "global"),
        (9, 4, LOCAL, "local"),
        (9, 4, WEAK, "weak"),
    ]);
    assert_eq!(table.find(2).unwrap().name, "global");
    assert_eq!(table.find(9).unwrap().name, "weak");
}

/// With the debug file of the C library, programs that call `read` were seen to spend their
/// time in `__libc_read`.
#[test]
fn the_name_that_people_write_wins_over_inner_names() {
    let table = table(&[
        (1, 4, GLOBAL, "__libc_read"),
        (1, 4, GLOBAL, "__read"),
        (1, 4, WEAK, "read"),
        (9, 4, GLOBAL, "__libc_malloc"),
        (9, 4, GLOBAL, "_inner"),
        (9, 4, GLOBAL, "malloc"),
        (20, 4, WEAK, "_ZN5shape4areaEv"),
        (20, 4, GLOBAL, "__plain"),
    ]);
    assert_eq!(table.find(2).unwrap().name, "read");
    assert_eq!(table.find(9).unwrap().name, "malloc");
    assert_eq!(table.find(20).unwrap().name, "_ZN5shape4areaEv");
}

#[test]
fn a_function_is_known_by_its_other_names() {
    let table = table(&[
        (1, 4, GLOBAL, "aliased"),
        (1, 4, GLOBAL, "zz_alias"),
        (1, 4, GLOBAL, "__under_alias"),
        (1, 4, LOCAL, "aliased_impl"),
        (9, 4, GLOBAL, "other"),
    ]);
    let found = table.find(2).unwrap();
    assert_eq!(found.name, "aliased");
    assert!(table.is_also(&found, "zz_alias"));
    for other in ["__under_alias", "aliased_impl", "other", "aliased"] {
        assert!(!table.is_also(&found, other), "{other}");
    }
}

#[test]
fn a_label_inside_of_a_function_is_not_a_function() {
    let table =
        table(&[(0x100, 0x50, GLOBAL, "outer"), (0x110, 0, LABEL, "loop"), (0x120, 8, LOCAL, "inner")]);
    assert_eq!(table.find(0x112).unwrap(), FoundSymbol { name: "outer".into(), start: 0x100 });
    assert_eq!(table.find(0x121).unwrap().name, "inner");
    assert_eq!(table.find(0x130).unwrap().name, "outer");
}

#[test]
fn versions_are_not_part_of_a_name() {
    for name in ["memcpy@@GLIBC_2.14", "memcpy@GLIBC_2.2.5", "memcpy"] {
        assert_eq!(without_version(name), "memcpy");
    }
    // Regression: Crystal's blocks had one name.
    assert_eq!(without_version("~procProc(Int32)@a.cr:7"), "~procProc(Int32)@a.cr:7");
}

#[test]
fn mapping_symbols_are_known() {
    for name in ["$x", "$d", "$d.12"] {
        assert!(is_mapping_symbol(name));
    }
    for name in ["$", "$s4main", "$xyz", "x", ""] {
        assert!(!is_mapping_symbol(name));
    }
}
