//! Where registers are saved, against gimli's own rows, over real system
//! libraries, and against garbage.

use gimli::{BaseAddresses, EhFrame, LittleEndian, Register, UnwindContext, UnwindSection};
use object::{Object, ObjectSection};
use swipr_properties::{registers, says_the_same};
use swipr_symbols::rows::{UnwindInput, build_table};
use swipr_unwind::arch::{Arch, Native};
use swipr_unwind::cfi_machine::Descriptions;
use swipr_unwind::memory::Memory;
use swipr_unwind::register_rules::{RegisterRule, Saved};

/// The sections of a file, at their addresses.
#[derive(Clone)]
struct Sections {
    header: (u64, Vec<u8>),
    frames: (u64, Vec<u8>),
}

impl Sections {
    fn of(path: &str) -> Option<Sections> {
        let bytes = std::fs::read(path).ok()?;
        let file = object::File::parse(&*bytes).unwrap();
        let section = |name| {
            let section = file.section_by_name(name)?;
            // Sections end within a page, of which all is mapped.
            let mut data = section.data().unwrap().to_vec();
            data.extend([0; 256]);
            Some((section.address(), data))
        };
        Some(Sections { header: section(".eh_frame_hdr")?, frames: section(".eh_frame")? })
    }

    fn find(&mut self, pc: u64, register: u8) -> Option<Saved> {
        let header = self.header.0;
        Descriptions::new().saved(self, header, pc, register)
    }
}

impl Memory for Sections {
    fn word(&mut self, _: u64) -> Option<u64> {
        None
    }

    fn code(&mut self, address: u64, buffer: &mut [u8]) -> bool {
        let bytes = [&self.frames, &self.header].into_iter().find_map(|(start, bytes)| {
            let at = usize::try_from(address.checked_sub(*start)?).ok()?;
            bytes.get(at..at.checked_add(buffer.len())?)
        });
        bytes.map(|bytes| buffer.copy_from_slice(bytes)).is_some()
    }
}

fn agrees_with_gimli(path: &str) {
    let Some(mut sections) = Sections::of(path) else { return };
    let frames = sections.frames.1.clone();
    let mut section = EhFrame::new(&frames, LittleEndian);
    section.set_address_size(8);
    let bases = BaseAddresses::default().set_eh_frame(sections.frames.0);
    // What a table says for objects without a search table is the same.
    let written_out = build_table(&UnwindInput {
        text: 0..1 << 31,
        eh_frame_hdr: None,
        eh_frame: (sections.frames.0, &frames),
        debug_frame: None,
        main: None,
        aarch64: cfg!(target_arch = "aarch64"),
    });
    let written_out = written_out.unwrap();
    let mut context = UnwindContext::new();
    let mut entries = section.entries(&bases);
    let mut compared = 0;
    while let Some(entry) = entries.next().unwrap() {
        let gimli::CieOrFde::Fde(partial) = entry else { continue };
        let fde = partial.parse(|_, bases, offset| section.cie_from_offset(bases, offset)).unwrap();
        let mut table = fde.rows(&section, &bases, &mut context).unwrap();
        while let Some(row) = table.next_row().unwrap() {
            let end = row.end_address().min(fde.end_address());
            if row.start_address() >= end {
                continue;
            }
            for register in registers() {
                let expected = row.register(Register(u16::from(register)));
                // A row's beginning and its end in turn.
                let pc = if compared % 2 == 0 { row.start_address() } else { end - 1 };
                let found = sections.find(pc, register);
                let found = found.unwrap_or_else(|| panic!("{path}: nothing at {pc:#x}"));
                let agrees = says_the_same(Some(found), expected.as_ref(), sections.frames.0);
                assert!(agrees, "{path}: {register} at {pc:#x}: {found:?}, {expected:?}");
                let written = written_out.view().saved(pc, register);
                if register != Native::FP && !fde.is_signal_trampoline() {
                    let written = written.unwrap_or_else(|| panic!("{path}: no row at {pc:#x}"));
                    let same = match (found.how, written.how) {
                        (RegisterRule::At | RegisterRule::Value, how) => {
                            how == found.how && written.length == found.length
                        }
                        _ => written == found,
                    };
                    assert!(same, "{path}: {register} at {pc:#x}: {written:?}, {found:?}");
                }
                compared += 1;
            }
        }
    }
    assert!(compared > 1000, "{path}: only {compared} compared");
}

fn libc() -> String {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let line = maps.lines().find(|line| line.contains("/libc.so") || line.contains("/ld-musl")).unwrap();
    line[line.find('/').unwrap()..].to_owned()
}

#[test]
fn every_callee_saved_register_is_where_gimli_says() {
    agrees_with_gimli(&libc());
    for library in ["ld-linux-x86-64.so.2", "libm.so.6"] {
        agrees_with_gimli(&format!("/usr/lib/x86_64-linux-gnu/{library}"));
    }
}

#[test]
fn garbage_has_an_end_and_is_never_a_panic() {
    let whole = Sections::of(&libc()).unwrap();
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below as u64) as usize
    };
    let part = whole.frames.1.len().min(4000);
    let mut found = 0;
    for _ in 0..4000 {
        let mut sections =
            Sections { frames: (whole.frames.0, whole.frames.1[..part].to_vec()), ..whole.clone() };
        for _ in 0..1 + random(60) {
            let at = random(part);
            sections.frames.1[at] = random(256) as u8;
        }
        let at = random(sections.header.1.len().min(400));
        sections.header.1[at] = random(256) as u8;
        // The functions at the section's beginning are at the search table's.
        let entry = 12 + 8 * random(40);
        let start = i32::from_le_bytes(sections.header.1[entry..entry + 4].try_into().unwrap());
        let pc = sections.header.0.wrapping_add_signed(i64::from(start)) + random(64) as u64;
        found += usize::from(sections.find(pc, 3).is_some());
    }
    assert!(found > 0);
}
