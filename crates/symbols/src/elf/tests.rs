use super::*;

#[test]
fn the_build_id_is_found_behind_another_note() {
    let mut notes = Vec::new();
    for (name, kind, value) in [(&b"Xen\0"[..], 3, &b"abcdef"[..]), (b"GNU\0", 3, &[1, 2, 3, 4, 5])] {
        notes.extend((name.len() as u32).to_le_bytes());
        notes.extend((value.len() as u32).to_le_bytes());
        notes.extend(u32::to_le_bytes(kind));
        notes.extend(name);
        notes.extend(value);
        notes.resize(notes.len().next_multiple_of(4), 0);
    }
    assert_eq!(build_id_of_notes(&notes), Some(vec![1, 2, 3, 4, 5]));
    for length in 0..notes.len() - 3 {
        assert_eq!(build_id_of_notes(&notes[..length]), None);
    }
}

#[test]
fn what_is_not_a_regular_file_is_refused() {
    assert!(matches!(ElfFile::open(Path::new("/dev/zero"), u64::MAX), Err(Error::NotAFile(_))));
    assert!(matches!(ElfFile::open(Path::new("/proc"), u64::MAX), Err(Error::NotAFile(_))));
    assert!(matches!(ElfFile::open(Path::new("/no/such/file"), u64::MAX), Err(Error::Io { .. })));
    let this = std::env::current_exe().unwrap();
    assert!(matches!(ElfFile::open(&this, 1000), Err(Error::TooLarge { .. })));
}

#[test]
fn a_file_that_shrinks_is_a_failed_read() {
    let path = std::env::temp_dir().join(format!("swipr-shrinking-{}", std::process::id()));
    std::fs::copy(std::env::current_exe().unwrap(), &path).unwrap();
    let file = ElfFile::open(&path, u64::MAX).unwrap();
    std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(4096).unwrap();
    let text = file.section(".text").unwrap();
    assert!(matches!(file.bytes(text, u64::MAX), Err(Error::Io { .. })));
    std::fs::remove_file(&path).unwrap();
}
