//! Two recordings side by side.

use swipr_formats::{Diff, Options, Stacks};
use swipr_properties::readers::pprof::{ValueType, decode};
use swipr_properties::readers::viewers;

use crate::cases;

fn read(text: &str) -> Stacks {
    Stacks::read(text).unwrap()
}

fn diff() -> Diff {
    let before = read("t;main;parse 60\nt;main;write 40\n");
    let after = read("t;main;parse 20\nt;main;write 40\nt;main;gzip 140\n");
    Diff { before, after, title: "release 2 </script>".to_owned() }
}

#[test]
fn folded_stacks_and_a_pprof_profile_of_one_recording_weigh_the_same() {
    for recording in [cases::everything(), cases::cpu(), cases::deep()] {
        let options = Options::default();
        let folded = read(&recording.text("folded", &options));
        let profile = decode(&recording.write("pprof", &options));
        assert!(folded.whole() > 0);
        assert_eq!(folded.weights.len(), profile.sample.len(), "{folded:?} {profile:?}");
        // Nanoseconds of CPU time where there are some, else samples.
        let is_cpu = |kind: &ValueType| profile.string(kind.kind) == "cpu";
        let value = profile.sample_type.iter().position(is_cpu).unwrap_or(0);
        assert_eq!(
            folded.whole(),
            profile.sample.iter().map(|sample| sample.value[value] as u64).sum::<u64>()
        );
    }
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
fn what_is_no_folded_stack_is_refused() {
    let error = Stacks::read("main 1\nmain;f x\n").unwrap_err();
    assert_eq!(error.to_string(), "no folded stacks: a line is \"main;f x\"");
}
