//! Two recordings side by side.

use swipr_formats::model::{Mode, State};
use swipr_formats::{Diff, Options, ReadError, Stacks};
use swipr_properties::readers::viewers;

use crate::cases;
use swipr_properties::recording::{Recording, function, module, native, stack, thread};

fn read(text: &str) -> Stacks {
    Stacks::read(text.as_bytes()).unwrap()
}

fn diff() -> Diff {
    let before = read("t;main;parse 60\nt;main;write 40\n");
    let after = read("t;main;parse 20\nt;main;write 40\nt;main;gzip 140\n");
    Diff { before, after, title: "release 2 </script>".to_owned() }
}

#[test]
fn folded_stacks_and_a_pprof_profile_of_one_recording_are_the_same() {
    for recording in [cases::everything(), cases::cpu(), cases::deep()] {
        let options = Options::default();
        let folded = Stacks::read(&recording.write("folded", &options)).unwrap();
        assert!(folded.whole() > 0);
        let pprof = Stacks::read(&recording.write("pprof", &options)).unwrap();
        let known = |stacks: &Stacks| stacks.weights.values().copied().collect::<Vec<_>>();
        assert_eq!(known(&folded).len(), known(&pprof).len(), "{folded:?} {pprof:?}");
        assert_eq!(folded.whole(), pprof.whole());
    }
    let mut recording = Recording::new(Mode::Wall);
    let app = module("/usr/bin/app", 0x1000);
    let frames = vec![
        native(0x1001, &app, vec![function("wait", 1)]),
        native(0x1002, &app, vec![function("main", 2)]),
    ];
    recording.add(&thread(1, "my worker"), State::Blocked(Some(9999)), 10_000_000, &stack(frames));
    recording.add(&thread(1, "my worker"), State::Runnable, 10_000_000, &stack(vec![]));
    let read = |format| Stacks::read(&recording.write(format, &Options::default())).unwrap();
    let expected: Vec<Vec<&str>> = vec![
        vec!["my_worker", "[no stack]", "[waiting for a CPU]"],
        vec!["my_worker", "main", "wait", "[blocked in 9999]"],
    ];
    let names: Vec<Vec<String>> = read("pprof").weights.into_keys().collect();
    assert_eq!(names, expected);
}

#[test]
fn shares_are_compared_and_not_counts() {
    let text = diff().text(10);
    let line = |name: &str| {
        text.lines().find(|line| line.ends_with(name)).unwrap().split_whitespace().collect::<Vec<_>>()
    };
    assert_eq!(line("  gzip"), ["+70.00", "0.00", "70.00", "+70.00", "70.00", "gzip"]);
    assert_eq!(line("  parse"), ["-50.00", "60.00", "10.00", "-50.00", "10.00", "parse"]);
    assert_eq!(line("  write")[0], "-20.00");
    assert_eq!(line("  main"), ["+0.00", "0.00", "0.00", "+0.00", "100.00", "main"]);
    assert_eq!(diff().text(1).lines().count(), 3);
}

#[test]
fn a_picture_and_a_page_have_both_recordings() {
    let (whole, boxes) = viewers::svg(&diff().svg());
    assert_eq!(whole, 200);
    assert!(boxes.contains(&("gzip".to_owned(), 140)) && boxes.contains(&("parse".to_owned(), 20)));
    assert!(diff().svg().contains("before 60.00%"));
    let page = diff().html();
    let data = viewers::html_data(&page);
    let sum = |name: &str| {
        data[name].as_array().unwrap().chunks(5).map(|span| span[4].as_u64().unwrap()).sum::<u64>()
    };
    assert_eq!((sum("spans"), sum("base")), (200, 100));
    assert_eq!(viewers::html(&page).len(), 3);
}

#[test]
fn what_is_no_recording_is_refused() {
    for (bytes, error) in [
        (&b"main;f x\n"[..], "neither folded stacks nor a pprof profile: a line is \"main;f x\""),
        (b"\x1f\x8b\x08\x00", "a pprof profile that is not whole: it cannot be unpacked"),
        (b"\x12\xff\xff", "a pprof profile that is not whole: it ends in the middle of a field"),
        (
            b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
            "a pprof profile that is not whole: a number is too long",
        ),
    ] {
        assert_eq!(Stacks::read(bytes).unwrap_err().to_string(), error);
    }
    let whole = cases::everything().write("pprof", &Options::default());
    for length in 0..whole.len() {
        let cut = Stacks::read(&whole[..length]);
        assert!(length == 0 || matches!(cut, Err(ReadError::Broken(_) | ReadError::Unknown(_))), "{length}");
    }
}
