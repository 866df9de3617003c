//! Recordings read back, named by this test's own executable, and written again.

use std::fs;
use std::path::{Path, PathBuf};
use swipr_formats::model::State;
use swipr_formats::{Options, Selection, find};
use swipr_offline::{Error, Recording, SearchPath, read, symbolize};
use swipr_symbols::elf::ElfFile;
use swipr_symbols::symbolizer::Budget;

/// Called from a place that is known by its address.
#[inline(never)]
fn known_function() -> u64 {
    std::hint::black_box(7)
}

/// The mapping of this executable's code: its path, first address, the one behind the last, file
/// offset.
fn own_code() -> (String, u64, u64, u64) {
    let here = known_function as *const () as u64;
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let found = maps.lines().find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let number = |text: &str| u64::from_str_radix(text, 16).ok();
        let (low, high) = fields[0].split_once('-')?;
        let (low, high) = (number(low)?, number(high)?);
        (low..high).contains(&here).then(|| (fields[5].to_owned(), low, high, number(fields[2]).unwrap()))
    });
    found.unwrap()
}

fn build_id(path: &str) -> String {
    let file = ElfFile::open(Path::new(path), 1 << 30).unwrap();
    file.build_id().unwrap_or_default().iter().map(|byte| format!("{byte:02x}")).collect()
}

fn raw(path: &str, build_id: &str) -> String {
    let (_, low, high, offset) = own_code();
    let here = known_function as *const () as u64;
    format!(
        r#"{{"type":"header","swipr":1,"pid":7,"process_name":"app","executable":"/app","start_ns":5,"interval_ns":10000000,"mode":"wall"}}
{{"type":"thread","id":0,"tid":7,"name":"ma\"in"}}
{{"type":"module","id":0,"path":"{path}","start":"{low:#x}","end":"{high:#x}","file_offset":"{offset:#x}","build_id":"{build_id}"}}
{{"type":"stack","id":0,"frames":[{{"address":"{here:#x}","module":0}},{{"address":"{:#x}","module":0}},{{"address":"0x0","kind":"note","functions":[{{"name":"[truncated: no unwind information]","offset":0}}]}}]}}
{{"type":"from a later version"}}
{{"type":"sample","time_ns":9,"thread":0,"state":"blocked","syscall":202,"weight_ns":10000000,"stack":0}}
{{"type":"sample","time_ns":10000009,"thread":0,"state":"running","weight_ns":10000000,"stack":0}}
{{"type":"end","ticks":2,"samples":2,"dropped":1,"something_new":[1]}}
"#,
        here + 1
    )
}

/// Where `runtime.mcall` is: its name ends the stack, as that of Go's function does.
#[inline(never)]
#[unsafe(export_name = "runtime.mcall")]
extern "C" fn known_first_function() -> u64 {
    std::hint::black_box(8)
}

fn folded(recording: &Recording) -> String {
    let selection = Selection { format: find("folded").unwrap(), options: Options::default() };
    String::from_utf8(recording.write(&selection)).unwrap()
}

#[test]
fn a_raw_recording_gets_its_names_elsewhere_and_becomes_any_format() {
    let path = own_code().0;
    let mut recording = read(&raw(&path, &build_id(&path))).unwrap();
    assert!(!recording.summary.is_cut && recording.summary.dropped == 1);
    assert_eq!(recording.samples[0].state, State::Blocked(Some(202)));
    let named = symbolize(&mut recording, &SearchPath::default(), Budget::default());
    assert_eq!((named.named, named.unknown.len(), named.missing.len()), (2, 0, 0));
    let text = folded(&recording);
    let stack = "[truncated: no unwind information];read_back::known_function;read_back::known_function";
    assert!(text.contains(stack), "{text}");
    assert!(text.contains("[blocked in futex] 1\n") && text.contains("ma\"in"), "{text}");
    let function = recording.stacks[0].frames[0].functions.last().unwrap();
    assert!(function.file.as_ref().unwrap().ends_with("read_back.rs") && function.line.is_some());
}

/// A stack continued behind a known first function, in what is no caller of it, and was marked as
/// truncated.
#[test]
fn a_stack_ends_at_a_known_first_function() {
    let (path, low, high, _) = own_code();
    let first = known_first_function as *const () as u64;
    assert!((low..high).contains(&first));
    let caller = format!("{:#x}", known_function as *const () as u64 + 1);
    // Behind the one that is called: the first function, and what is there by chance.
    let stack = format!("{:#x}\",\"module\":0}},{{\"address\":\"{caller}", first + 1);
    let process = r#"0}]},{"address":"0x0","kind":"note","functions":[{"name":"[process 7]","offset":0}]}]}"#;
    let text = raw(&path, &build_id(&path)).replace(&caller, &stack).replace("0}]}]}", process);
    let mut recording = read(&text).unwrap();
    assert_eq!(recording.stacks[0].frames.len(), 5);
    symbolize(&mut recording, &SearchPath::default(), Budget::default());
    let text = folded(&recording);
    assert!(text.contains("[process 7];runtime.mcall;read_back::known_function"), "{text}");
    assert!(!text.contains("truncated") && text.matches("known_function").count() == 2, "{text}");
    // The innermost function may not have called yet: its caller is still there.
    let innermost = format!("{:#x}", known_function as *const () as u64);
    let text = raw(&path, &build_id(&path)).replace(&format!("\"{innermost}\""), &format!("\"{first:#x}\""));
    let mut recording = read(&text).unwrap();
    symbolize(&mut recording, &SearchPath::default(), Budget::default());
    assert_eq!(recording.stacks[0].frames.len(), 3);
}

#[test]
fn a_file_is_found_by_its_build_id_and_another_one_is_not_used() {
    let path = own_code().0;
    let id = build_id(&path);
    let directory = std::env::temp_dir().join(format!("swipr-offline-{}", std::process::id()));
    let place = directory.join(".build-id").join(&id[..2]);
    fs::create_dir_all(&place).unwrap();
    fs::copy(&path, place.join(&id[2..])).unwrap();
    fs::copy("/proc/self/exe", directory.join("other")).unwrap();
    let named = |path: &str, id: &str, search: SearchPath| {
        let mut recording = read(&raw(path, id)).unwrap();
        let named = symbolize(&mut recording, &search, Budget::default());
        (named.named, named.missing.len())
    };
    let search = || SearchPath::new([directory.clone()]);
    let gone = "/nowhere/app";
    let found = named(gone, &id, search());
    let by_name = named("/nowhere/other", &id, search());
    let wrong = named("/nowhere/other", "0102030405", search());
    let only = named(&path, "", SearchPath::only([PathBuf::from("/nowhere")]));
    fs::remove_dir_all(&directory).unwrap();
    assert_eq!((found, by_name), ((2, 0), (2, 0)));
    assert_eq!((wrong, only), ((0, 1), (0, 1)));
}

#[test]
fn files_of_swift_profile_recorder_are_read_with_their_faults() {
    let (path, low, high, offset) = own_code();
    let here = known_function as *const () as u64;
    let bias = low
        - ElfFile::open(Path::new(&path), 1 << 30)
            .unwrap()
            .code_address(offset..offset + (high - low))
            .unwrap();
    for key in ["segmentSlide", "fileMappedAddress"] {
        let text = format!(
            r#"the program's own output
[SWIPR] VERS {{ "version": 1}}
[SWIPR] VMAP {{"path": "{path}", "architecture": "x86_64", "{key}": "{bias:#x}", "segmentStartAddress": "{low:#x}", "segmentEndAddress": "{high:#x}"}}
[SWIPR] CONF {{ "sampleCount": 2, "microSecondsBetweenSamples": 10000, "currentTimeSeconds": 3, "currentTimeNanoseconds": 5, }}
[SWIPR] SMPL {{"pid": 7, "tid": 8, "name": "wo"rk\er", "timeSec": 3, "timeNSec": 9}}
[SWIPR] STCK {{"ip": "{here:#x}", "sp": "0x10"}}
[SWIPR] STCK {{"ip": "{here:#x}", "sp": "0x10"}}
[SWIPR] STCK {{"ip": "{:#x}", "sp": "0x20"}}
[SWIPR] DONE
[SWIPR] MESG {{ "message": "Sample 2 failed, error: 1." }}
"#,
            here + 1
        );
        let mut recording = read(&text).unwrap();
        assert_eq!((recording.header.pid, recording.header.start_ns), (7, 3_000_000_005));
        assert_eq!((recording.header.interval_ns, recording.samples[0].time_ns), (10_000_000, 3_000_000_009));
        assert_eq!((recording.threads[0].tid, &*recording.threads[0].name), (8, "wo\"rk\\er"));
        assert_eq!(recording.stacks[0].frames.len(), 2);
        symbolize(&mut recording, &SearchPath::default(), Budget::default());
        let text = folded(&recording);
        assert!(text.ends_with("read_back::known_function;read_back::known_function 1\n"), "{text}");
    }
}

#[test]
fn what_is_no_recording_is_an_error_with_its_line_and_a_torn_end_is_none() {
    assert_eq!(read("").unwrap_err(), Error::NoHeader);
    assert_eq!(read("{\"type\":\"header\"}\n").unwrap_err(), Error::NoHeader);
    let newer = read("{\"type\":\"header\",\"swipr\":2}\n").unwrap_err();
    assert!(newer.to_string().contains("of version 2"), "{newer}");
    let path = own_code().0;
    let good = raw(&path, "");
    let wrong = good.replace("\"thread\":0", "\"thread\":5");
    assert!(matches!(read(&wrong).unwrap_err(), Error::Line { number: 6, .. }));
    // It was taken for whole, with figures of 0; a piece that ends with a brace was refused.
    let frame = good.find("\"offset\":0}").unwrap() + "\"offset\":0}".len();
    for (end, samples) in [(good.len() - 10, 2), (good.find("{\"type\":\"end\"").unwrap(), 2), (frame, 0)] {
        let summary = read(&good[..end]).unwrap().summary;
        assert!(summary.is_cut && summary.uncounted == 1, "{summary:?}");
        assert_eq!((summary.samples, summary.threads), (samples, 1));
        assert_eq!(summary.duration_ns, if samples == 2 { 10_000_004 } else { 0 });
    }
    let lines = "[SWIPR] STCK {\"ip\": \"0x1\", \"sp\": \"0x1\"}\n";
    assert!(matches!(read(lines).unwrap_err(), Error::Line { number: 1, .. }));
}
