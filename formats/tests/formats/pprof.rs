//! pprof profiles, decoded by prost and held to what the strictest readers check.

use std::collections::BTreeSet;
use std::io::Read;

use flate2::read::GzDecoder;
use prost::Message;
use swipr_formats::Options;

use crate::cases;
use crate::profile_proto::{Profile, Sample};

/// Unpacks, decodes and validates a profile.
pub fn decode(bytes: &[u8]) -> Profile {
    let mut plain = Vec::new();
    GzDecoder::new(bytes).read_to_end(&mut plain).unwrap();
    let profile = Profile::decode(plain.as_slice()).unwrap();
    validate(&profile);
    profile
}

fn validate(profile: &Profile) {
    let strings = profile.string_table.len() as i64;
    let known = |id: i64| assert!((0..strings).contains(&id), "string {id}");
    let distinct: BTreeSet<&String> = profile.string_table.iter().collect();
    assert_eq!(distinct.len(), profile.string_table.len());
    assert_eq!(profile.string_table[0], "");
    assert_eq!(profile.sample_type.len(), 2);
    for (index, mapping) in profile.mapping.iter().enumerate() {
        assert_eq!(mapping.id, index as u64 + 1);
        known(mapping.filename);
        known(mapping.build_id);
    }
    for (index, function) in profile.function.iter().enumerate() {
        assert_eq!(function.id, index as u64 + 1);
        for id in [function.name, function.system_name, function.filename] {
            known(id);
        }
        assert_ne!(function.name, 0);
    }
    for (index, location) in profile.location.iter().enumerate() {
        assert_eq!(location.id, index as u64 + 1);
        assert!(location.mapping_id <= profile.mapping.len() as u64);
        for line in &location.line {
            assert!((1..=profile.function.len() as u64).contains(&line.function_id));
        }
    }
    for sample in &profile.sample {
        assert_eq!(sample.value.len(), profile.sample_type.len());
        assert!(!sample.location_id.is_empty());
        for id in &sample.location_id {
            assert!((1..=profile.location.len() as u64).contains(id));
        }
        for label in &sample.label {
            assert_ne!(label.key, 0);
            known(label.key);
            known(label.str);
        }
    }
}

impl Profile {
    pub fn string(&self, id: i64) -> &str {
        &self.string_table[id as usize]
    }

    /// Names of a sample's frames, leaf first, inlined ones included; "" where only
    /// the address is known.
    pub fn frames(&self, sample: &Sample) -> Vec<&str> {
        let mut names = Vec::new();
        for id in &sample.location_id {
            let location = &self.location[*id as usize - 1];
            if location.line.is_empty() {
                names.push("");
            }
            for line in &location.line {
                let function = &self.function[line.function_id as usize - 1];
                names.push(self.string(function.name));
            }
        }
        names
    }

    /// The number of a label.
    pub fn number(&self, sample: &Sample, key: &str) -> Option<i64> {
        let mut labels = sample.label.iter();
        labels.find(|label| self.string(label.key) == key).map(|label| label.num)
    }
}

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
    let [app, libc] = profile.mapping.as_slice() else {
        panic!("two mappings: {:?}", profile.mapping);
    };
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
    assert_eq!(profile.frames(sample), ["{anonymous}::inner", "outer", "Object.run", "main"]);
}

#[test]
fn an_empty_profile_says_why_in_a_comment() {
    let profile = decode(&cases::empty().write("pprof", &Options::default()));
    let comments: Vec<&str> = profile.comment.iter().map(|&id| profile.string(id)).collect();
    assert!(comments.iter().any(|c| c.contains("no samples")), "{comments:?}");
    assert!(comments.iter().any(|c| c.contains("missed=300")), "{comments:?}");
}
