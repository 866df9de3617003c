//! Packages depend on those of lower floors only.

use crate::workspace::Package;
use std::collections::BTreeSet;

/// Dependencies between packages, as `from -> to`.
pub fn dependencies(packages: &[Package]) -> BTreeSet<String> {
    let of = |package: &Package| {
        let from = package.name.clone();
        package.dependencies.iter().map(move |to| format!("{from} -> {to}")).collect::<Vec<_>>()
    };
    packages.iter().flat_map(of).collect()
}
