//! No two types of a crate have one name.

use crate::workspace::{Crate, Package};
use std::collections::{BTreeMap, BTreeSet};
use syn::visit::{self, Visit};

/// Names that two types of a crate have or more, as `package: name: files`.
pub fn repeated(packages: &[Package]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for package in packages {
        for of in package.product_crates() {
            let repeated = files(&of).into_iter().filter(|(_, files)| files.len() > 1);
            for (name, files) in repeated {
                let files: Vec<String> = files.into_iter().collect();
                found.insert(format!("{}: {name}: {}", package.name, files.join(", ")));
            }
        }
    }
    found
}

/// The types of a crate, each with the files that define one of its name. One file has a name twice
/// for two processors only.
fn files(of: &Crate) -> BTreeMap<String, BTreeSet<String>> {
    let mut files: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for module in &of.modules {
        let mut types = Types::default();
        types.visit_file(&module.syntax);
        for name in types.found {
            files.entry(name).or_default().insert(module.file.clone());
        }
    }
    files
}

#[derive(Default)]
struct Types {
    found: Vec<String>,
}

impl<'a> Visit<'a> for Types {
    fn visit_item(&mut self, item: &'a syn::Item) {
        let ident = match item {
            syn::Item::Enum(item) => Some(&item.ident),
            syn::Item::Struct(item) => Some(&item.ident),
            syn::Item::Trait(item) => Some(&item.ident),
            syn::Item::Type(item) => Some(&item.ident),
            syn::Item::Union(item) => Some(&item.ident),
            _ => None,
        };
        self.found.extend(ident.map(ToString::to_string));
        visit::visit_item(self, item);
    }
}
