//! pprof profiles, decoded by prost and held to what the strictest readers check.

pub use super::profile_proto::*;
use flate2::read::GzDecoder;
use prost::Message;
use std::collections::BTreeSet;
use std::io::Read;

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
    assert!((1..=2).contains(&profile.sample_type.len()));
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
    /// A text by its number.
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
