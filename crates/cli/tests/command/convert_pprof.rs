//! `swipr convert` of pprof profiles: swipr's own, and those of others.

use crate::convert::{leaves, recorded};
use crate::support::*;
use prost::Message;
use swipr_c_tests::directory::Directory;
use swipr_properties::readers::pprof::{Function, Line, Location, Profile, Sample, ValueType};

#[test]
fn gos_own_profiles_can_be_read() {
    let go = std::process::Command::new("go").arg("version").output();
    if !go.is_ok_and(|output| output.status.success()) {
        eprintln!("not run: there is no go");
        return;
    }
    let directory = Directory::new();
    let raw = recorded(&directory);
    let path = |name: &str| directory.path().join(name).display().to_string();
    says(["convert", &raw, "-o", &path("ours.pb.gz")]).well();
    // Rewritten by Go's own encoder.
    let made = std::process::Command::new("go")
        .args(["tool", "pprof", "-proto", "-output", &path("gos.pb.gz"), &path("ours.pb.gz")])
        .env("HOME", directory.path())
        .output()
        .expect("go");
    assert!(made.status.success(), "{made:?}");
    let folded = |name: &str| says(["convert", &path(name), "-o", "-", "-f", "folded", "-q"]).well().out;
    assert_eq!(leaves(&folded("gos.pb.gz")), leaves(&folded("ours.pb.gz")));
}

/// A profile of `main;work` and `main`, with such values.
fn profile(kind: &str, unit: &str, work: [i64; 2], main: [i64; 2]) -> Vec<u8> {
    let strings = ["", "samples", "count", kind, unit, "work", "main"];
    let value_type = |kind, unit| ValueType { kind, unit };
    let of = |id: u64| Line { function_id: id, ..Line::default() };
    let sample = |ids: &[u64], values: [i64; 2]| Sample {
        location_id: ids.to_vec(),
        value: values.to_vec(),
        ..Sample::default()
    };
    let profile = Profile {
        string_table: strings.map(str::to_owned).to_vec(),
        sample_type: vec![value_type(1, 2), value_type(3, 4)],
        sample: vec![sample(&[1, 2], work), sample(&[2], main)],
        location: [1, 2].map(|id| Location { id, line: vec![of(id)], ..Location::default() }).to_vec(),
        function: [1, 2].map(|id| Function { id, name: id as i64 + 4, ..Function::default() }).to_vec(),
        period_type: Some(value_type(3, 4)),
        period: 10,
        ..Profile::default()
    };
    profile.encode_to_vec()
}

/// Regression: microseconds, as of Node.js, were nanoseconds, and 80 ms were 80 us.
#[test]
fn times_of_a_pprof_profile_may_be_in_any_unit() {
    let directory = Directory::new();
    let file = directory.path().join("a.pb");
    let converted = |format: &str| {
        let file = file.display().to_string();
        says(["convert", &file, "-f", format, "-o", "-", "-q", "--weight", "ns"]).well().out
    };
    for (unit, ns) in [
        ("nanoseconds", 1_u64),
        ("microseconds", 1_000),
        ("us", 1_000),
        ("milliseconds", 1_000_000),
        ("seconds", 1_000_000_000),
        ("bytes", 1),
    ] {
        std::fs::write(&file, profile("cpu", unit, [5, 50], [3, 30])).expect("a file");
        assert_eq!(converted("folded"), format!("main {}\nmain;work {}\n", 30 * ns, 50 * ns), "{unit}");
        assert!(converted("raw").contains(&format!("\"interval_ns\":{}", 10 * ns)), "{unit}");
    }
}

/// Regression: bytes of Go's heap profile were milliseconds of wall-clock time, and its first kind
/// of value the samples.
#[test]
fn a_profile_of_memory_is_of_bytes() {
    let directory = Directory::new();
    let file = |name: &str, bytes: Vec<u8>| {
        let path = directory.path().join(name);
        std::fs::write(&path, bytes).expect("a file");
        path.display().to_string()
    };
    let heap = file("heap.pb", profile("inuse_space", "bytes", [5, 50], [4096, 512]));
    let converted = |format: &str| says(["convert", &heap, "-f", format, "-o", "-"]).well();
    let said = converted("folded");
    assert_eq!(said.out, "main 512\nmain;work 50\n");
    assert!(said.errors.contains("what is counted is inuse_space in bytes, no time"), "{said:?}");
    let svg = converted("svg").out;
    assert!(svg.contains("inuse_space in bytes") && svg.contains(", 50 bytes"), "{svg}");
    assert!(!svg.contains(" ms") && !svg.contains("wall clock"), "{svg}");
    assert!(converted("html").out.contains("\"whole\":\"inuse_space in bytes\""));
    assert!(converted("speedscope").out.contains("\"unit\":\"bytes\""));
    // Regression: a line for each object, and the disk was full.
    assert_eq!(converted("raw").out.matches("\"type\":\"sample\"").count(), 2);
    let pprof = directory.path().join("again.pb.gz").display().to_string();
    says(["convert", &heap, "-o", &pprof, "-q"]).well();
    // Where sums are written, the objects stay.
    let page = says(["convert", &pprof, "-f", "html", "-o", "-"]).well().out;
    assert!(page.contains("\"samples\":4101,"), "{page}");
    assert!(
        says(["convert", &pprof, "-f", "folded", "-o", "-"]).well().errors.contains("inuse_space in bytes")
    );
    let said = says(["diff", &heap, &pprof]).well();
    assert!(said.out.contains("562 bytes before, 562 bytes after"), "{said:?}");
    let mut counts =
        Profile::decode(&*profile("inuse_space", "bytes", [5, 50], [4096, 512])).expect("a profile");
    counts.default_sample_type = 1;
    let counts = file("counts.pb", counts.encode_to_vec());
    assert_eq!(says(["convert", &counts, "-f", "folded", "-o", "-"]).well().out, "main 4096\nmain;work 5\n");
    let time = file("time.pb", profile("cpu", "nanoseconds", [5, 50], [3, 30]));
    let expected = "heap.pb is of inuse_space in bytes, ";
    says(["diff", &heap, &time]).refuses(2, &["cannot compare", expected, "time.pb is of time"]);
    // Folded stacks do not say what they are of.
    let folded = file("heap.folded", converted("folded").out.into_bytes());
    assert!(says(["diff", &heap, &folded]).well().out.contains("562 bytes before"));
    let raw = file("heap.jsonl", converted("raw").out.into_bytes());
    assert!(says(["convert", &raw, "-f", "svg", "-o", "-"]).well().out.contains(", 50 bytes"));
    let mut objects =
        Profile::decode(&*profile("inuse_space", "bytes", [5, 50], [4096, 512])).expect("a profile");
    "inuse_objects".clone_into(&mut objects.string_table[1]);
    objects.default_sample_type = 1;
    let objects = file("objects.pb", objects.encode_to_vec());
    let svg = says(["convert", &objects, "-f", "svg", "-o", "-"]).well().out;
    assert!(svg.contains(", 4101 inuse_objects)"), "{svg}");
}

/// Regression: delays at locks were wall-clock time, or the number of waits.
#[test]
fn a_profile_of_delays_is_of_delays() {
    let directory = Directory::new();
    let path = directory.path().join("mutex.pb").display().to_string();
    std::fs::write(&path, profile("delay", "nanoseconds", [5, 5_000_000], [2, 3_000_000])).expect("a file");
    let converted = |format: &str| says(["convert", &path, "-f", format, "-o", "-"]).well();
    let said = converted("folded");
    assert_eq!(said.out, "main 3000000\nmain;work 5000000\n");
    assert!(!said.errors.contains("no time"), "{said:?}");
    let svg = converted("svg").out;
    assert!(svg.contains(">delay<") && svg.contains("5.000 ms"), "{svg}");
    let pprof = directory.path().join("again.pb.gz").display().to_string();
    says(["convert", &path, "-o", &pprof, "-q"]).well();
    assert!(says(["diff", &path, &pprof]).well().out.contains("0.008 s before, 0.008 s after"));
}

/// Regression: it was called CPU time, with the weights of the clock on the wall.
#[test]
fn of_several_clocks_the_one_that_the_profile_names_is_meant() {
    let directory = Directory::new();
    let path = directory.path().join("both.pb").display().to_string();
    let mut both = Profile::decode(&*profile("cpu", "nanoseconds", [5, 50], [3, 30])).expect("a profile");
    both.string_table.push("wall".to_owned());
    both.sample_type.insert(1, ValueType { kind: 7, unit: 4 });
    both.sample.iter_mut().for_each(|sample| sample.value.insert(1, 1000));
    for (default, mode) in [(7, "wall"), (3, "cpu"), (0, "cpu")] {
        both.default_sample_type = default;
        std::fs::write(&path, both.encode_to_vec()).expect("a file");
        let raw = says(["convert", &path, "-f", "raw", "-o", "-", "-q"]).well().out;
        assert!(raw.contains(&format!("\"mode\":\"{mode}\"")), "{default}: {raw}");
    }
}

/// Regression: a stack counted as one sample, and hardly any change was no chance.
#[test]
fn a_profile_without_counts_does_not_say_what_chance_does() {
    let directory = Directory::new();
    let path = directory.path().join("a.pb").display().to_string();
    let mut profile =
        Profile::decode(&*profile("cpu", "nanoseconds", [500, 50], [400, 30])).expect("a profile");
    std::fs::write(&path, profile.encode_to_vec()).expect("a file");
    assert!(says(["diff", &path, &path]).well().out.contains("~: chance may do that with "));
    profile.sample_type.remove(0);
    profile.sample.iter_mut().for_each(|sample| _ = sample.value.remove(0));
    std::fs::write(&path, profile.encode_to_vec()).expect("a file");
    assert!(!says(["diff", &path, &path]).well().out.contains('~'));
}

/// Regression: -30 became 18,446,744,073,709,551,586 nanoseconds.
#[test]
fn a_pprof_profile_that_is_a_difference_is_refused() {
    let directory = Directory::new();
    let file = directory.path().join("a.pb");
    std::fs::write(&file, profile("cpu", "nanoseconds", [5, 50], [-3, -30])).expect("a file");
    let file = file.display().to_string();
    for said in [says(["convert", &file, "-f", "folded", "-o", "-"]), says(["diff", &file, &file])] {
        said.refuses(1, &["difference of two profiles", "next: compare the two themselves: swipr diff"]);
    }
}
