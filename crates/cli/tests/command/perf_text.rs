//! `perf script`'s text as `swipr convert` reads it, perf's own and swipr's.

use crate::support::*;
use swipr_c_tests::directory::Directory;

/// Regression: each line of a source file was one more frame, `[unknown]`.
#[test]
fn perfs_text_with_lines_has_the_same_stacks_and_keeps_them() {
    let directory = Directory::new();
    let text = "app 7/7 1.0: 5 cpu-clock:\n\
                \t0000000000001004 inner+0x0 (/app)\n  /src/in.c:3\n\
                \t0000000000001004 outer+0x4 (/app)\n  /src/out.c:44\n\
                \t2000 lost+0x9 (/lib)\n  lib[2000]\n\
                \t            3000 main+0x1 (/app)\n\n";
    let file = directory.path().join("a.perf");
    std::fs::write(&file, text).expect("a file");
    let converted = |format: &str| {
        let file = file.display().to_string();
        says(["convert", &file, "-f", format, "-o", "-", "-q", "--lines"]).well().out
    };
    assert_eq!(converted("folded"), "main;lost;outer;inner 5\n");
    let again = converted("perf");
    let places: Vec<&str> = again.lines().filter(|line| line.starts_with("  ")).collect();
    assert_eq!(places, ["  /src/in.c:3", "  /src/out.c:44"]);
}

/// Regression: the other samples were the frames of the first.
#[test]
fn perfs_text_of_a_recording_without_stacks_has_a_frame_for_each_sample() {
    let directory = Directory::new();
    let file = directory.path().join("a.perf");
    let text = "             app  7 1.500000:   5 cpu-clock:ppp:      55c28f3cb547 alpha+0x97 (/bin/app)\n  \
                app.c:3\n            dead  8 1.600000:   7 cpu-clock:ppp:  7f41a3a45b46 beta+0x56 ([vdso])\n\
                my: worker one 12  9 1.700000:   9 cpu-clock:ppp:      55c28f3cb547 [unknown] (/bin/app)\n";
    std::fs::write(&file, text).expect("a file");
    let converted = |format: &str| {
        let file = file.display().to_string();
        says(["convert", &file, "-f", format, "-o", "-", "-q", "--lines"]).well().out
    };
    let folded = "alpha 5\nbeta 7\n[app] 9\n";
    let sorted = |text: &str| text.lines().map(str::to_owned).collect::<std::collections::BTreeSet<_>>();
    assert_eq!(sorted(&converted("folded")), sorted(folded));
    let again = converted("perf");
    assert!(again.contains("alpha+0x97 (/bin/app)\n  app.c:3\n"), "{again}");
    assert!(again.contains("my:_worker_one_12 0/9 1.700000000: 9 "), "{again}");
}

/// Regression: cycles were nanoseconds of CPU time, and nothing was said.
#[test]
fn periods_of_perfs_events_that_are_no_time_are_named() {
    let directory = Directory::new();
    let file = directory.path().join("a.perf").display().to_string();
    let sample = |event: &str, leaf: &str| format!("app 7 1.5: 5 {event}: \n\t1061 {leaf}+0x1 (/app)\n\n");
    let converts = |text: String, more: &[&str]| {
        std::fs::write(&file, text).expect("a file");
        says(["convert", &file, "-f", "folded", "-o", "-"].iter().chain(more)).well()
    };
    for event in ["cpu-clock:pppH", "task-clock:u", "wall-clock"] {
        let said = converts(sample(event, "f"), &["--weight", "ns"]);
        assert!(said.out == "f 5\n" && !said.errors.contains("next: "), "{said:?}");
    }
    let both = sample("cycles:P", "f") + &sample("cpu_core/instructions/", "g") + &sample("cycles:P", "g");
    let said = converts(both.clone(), &[]);
    let counted = "what is counted is cpu_core/instructions/, cycles:P, not nanoseconds";
    assert!(said.out == "f 5\ng 10\n" && said.errors.contains(counted), "{said:?}");
    assert_eq!(converts(both, &["-q"]).errors, "");
    assert!(says(["diff", &file, &file]).well().errors.contains(counted));
}

/// Regression: of two samples in `outer`, one was in a module `inlined`; with lines, `inner` called
/// itself from there.
#[test]
fn functions_that_perf_says_are_inlined_are_in_the_file_of_the_function_around_them() {
    let directory = Directory::new();
    let file = directory.path().join("a.perf");
    let plain = "app 7 1.5: 5 cpu-clock:ppp: \n\t 118a inner+0x1a (inlined)\n\t 118a middle+0x1a (inlined)\n\
                 \t 118a outer+0x1a (/app)\n\t 1061 main+0x21 (/app)\n\n";
    let lines = "app 7 1.5: 5 cpu-clock:ppp: \n\t 118a inner+0x1a\n  a.c:2 (inlined)\n\t 118a middle+0x1a\n  \
                 a.c:3 (inlined)\n\t 118a outer+0x1a (/app)\n  a.c:4\n\t 1061 main+0x21 (/app)\n\n";
    for (text, places) in [(plain, ["", "", ""]), (lines, ["  a.c:2\n", "  a.c:3\n", "  a.c:4\n"])] {
        std::fs::write(&file, text).expect("a file");
        let file = file.display().to_string();
        let again = says(["convert", &file, "-f", "perf", "-o", "-", "-q", "--lines"]).well().out;
        let [inner, middle, outer] = places;
        let frames = format!(
            "\t000000000000118a inner+0x0 (/app)\n{inner}\t000000000000118a middle+0x0 (/app)\n{middle}\
             \t000000000000118a outer+0x1a (/app)\n{outer}\t0000000000001061 main+0x21 (/app)\n"
        );
        assert!(again.contains(&frames), "{again}");
    }
}

/// Regression: an address was taken for an event's name, or its period.
#[test]
fn perfs_text_of_few_fields_has_its_functions() {
    let directory = Directory::new();
    let file = directory.path().join("a.perf");
    let folded = |text: &str| {
        std::fs::write(&file, text).expect("a file");
        let file = file.display().to_string();
        says(["convert", &file, "-f", "folded", "-o", "-", "-q", "--weight", "samples"]).well().out
    };
    let alone = ["5581c2d4e1b5 add", "401136 add", "cpu-clock: add", "9 cpu-clock:  401136 add+0x5 (/a)"];
    for frame in alone {
        assert_eq!(folded(&format!("a 7/7 1.5:      {frame}\n")), "add 1\n", "{frame}");
    }
    assert_eq!(folded("a 7 1.5: \n\t add\n\t main\n\n"), "main;add 1\n");
    assert_eq!(folded("a 7 1.5:  1001001 5581c2d4e077 add\n"), "add 1\n");
    for other in ["1001001", "sched:sched_switch: prev_comm=a prev_pid=7", "probe:f: x=1"] {
        assert_eq!(folded(&format!("a 7 1.5:  {other}\n\t4011 add\n\n")), "add 1\n", "{other}");
    }
    assert_eq!(folded("a 7 1.5:  9 cpu-clock: 4011 add\na 7 1.6: PERF_RECORD_EXIT(7)\n"), "add 1\n");
}
