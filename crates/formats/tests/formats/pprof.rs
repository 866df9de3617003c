//! pprof profiles: what is in them besides samples.

use swipr_formats::Options;
use swipr_properties::readers::pprof::decode;

use crate::cases;

#[test]
fn the_first_mapping_is_the_main_program() {
    for recording in [cases::everything(), cases::cpu(), cases::empty()] {
        let profile = decode(&recording.write("pprof", &Options::default()));
        assert_eq!(profile.string(profile.mapping[0].filename), "/usr/bin/app");
    }
}

#[test]
fn mappings_tell_what_is_known_and_carry_build_ids() {
    let profile = decode(&cases::everything().write("pprof", &Options::default()));
    let [app, jit, libc] = profile.mapping.as_slice() else {
        panic!("three mappings: {:?}", profile.mapping);
    };
    assert_eq!(profile.string(jit.filename), "[JIT]");
    assert_eq!(profile.string(app.build_id), "ab01ff");
    assert_eq!(profile.string(libc.filename), "/lib/libc.so.6");
    assert!(app.has_functions && app.has_filenames && app.has_line_numbers);
    assert!(app.has_inline_frames && libc.has_functions);
    assert!(!libc.has_filenames && !libc.has_line_numbers && !libc.has_inline_frames);
}

#[test]
fn inlined_functions_are_lines_of_one_location_innermost_first() {
    let profile = decode(&cases::everything().write("pprof", &Options::default()));
    let sample = &profile.sample[0];
    assert_eq!(sample.location_id.len(), 3);
    assert_eq!(profile.frames(sample), ["{anonymous}::inner", "outer", "JS:*run /srv/app.js:7:13", "main"]);
}

#[test]
fn an_empty_profile_says_why_in_a_comment() {
    let profile = decode(&cases::empty().write("pprof", &Options::default()));
    let comments: Vec<&str> = profile.comment.iter().map(|&id| profile.string(id)).collect();
    assert!(comments.iter().any(|c| c.contains("no samples")), "{comments:?}");
    assert!(comments.iter().any(|c| c.contains("late=300")), "{comments:?}");
}
