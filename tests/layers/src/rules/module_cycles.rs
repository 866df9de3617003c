//! No top-level module of a crate imports, by any way, one that imports it.

use crate::arrows;
use crate::workspace::Package;
use std::collections::{BTreeMap, BTreeSet};

/// Arrows that are part of a cycle, as `package: from -> to`, with the places that make them. Those
/// in `listed` are found where they close a cycle together with arrows that are not listed.
pub fn arrows_on_cycles(packages: &[Package], listed: &BTreeSet<String>) -> BTreeMap<String, Vec<String>> {
    let mut found = BTreeMap::new();
    for package in packages {
        for arrows in package.crates().iter().map(arrows::of) {
            let entry = |arrow: &(String, String)| format!("{}: {} -> {}", package.name, arrow.0, arrow.1);
            let unlisted: BTreeSet<_> =
                arrows.keys().filter(|arrow| !listed.contains(&entry(arrow))).collect();
            for (arrow, places) in &arrows {
                if arrows::lead(&unlisted, &arrow.1, &arrow.0) {
                    found.insert(entry(arrow), places.iter().cloned().collect());
                }
            }
        }
    }
    found
}
