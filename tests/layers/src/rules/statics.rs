//! Statics that change while the program runs.

use crate::idents;
use crate::workspace::{Module, Package};
use proc_macro2::TokenTree;
use std::collections::{BTreeMap, BTreeSet};
use syn::visit::{self, Visit};

/// Types through which a shared reference can write. Atomics are known by their first letters.
const CELLS: [&str; 11] = [
    "Cell",
    "LazyCell",
    "LazyLock",
    "Mutex",
    "Once",
    "OnceCell",
    "OnceLock",
    "RefCell",
    "RwLock",
    "SyncUnsafeCell",
    "UnsafeCell",
];

/// Mutable statics of all crates but tests', as `file: name`.
pub fn mutable(packages: &[Package]) -> BTreeSet<String> {
    let modules: Vec<Module> =
        packages.iter().flat_map(Package::product_crates).flat_map(|of| of.modules).collect();
    let mut holders = Holders::default();
    modules.iter().for_each(|module| holders.visit_file(&module.syntax));
    let with_cells = with_cells(holders.found);
    let mut found = BTreeSet::new();
    for module in &modules {
        let mut statics = Statics { with_cells: &with_cells, found: Vec::new() };
        statics.visit_file(&module.syntax);
        found.extend(statics.found.into_iter().map(|name| format!("{}: {name}", module.file)));
    }
    found
}

fn is_cell(name: &str) -> bool {
    CELLS.contains(&name) || name.starts_with("Atomic")
}

/// Types of the workspace that have a cell in them, by name.
fn with_cells(fields: BTreeMap<String, BTreeSet<String>>) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    loop {
        let has_cell =
            |names: &BTreeSet<String>| names.iter().any(|name| is_cell(name) || found.contains(name));
        let more: Vec<String> = fields
            .iter()
            .filter(|(of, names)| !found.contains(*of) && has_cell(names))
            .map(|(of, _)| of.clone())
            .collect();
        if more.is_empty() {
            return found;
        }
        found.extend(more);
    }
}

/// Types with the names in their fields' types.
#[derive(Default)]
struct Holders {
    found: BTreeMap<String, BTreeSet<String>>,
}

impl Holders {
    fn add<'a>(&mut self, of: &syn::Ident, types: impl Iterator<Item = &'a syn::Type>) {
        self.found.entry(of.to_string()).or_default().extend(types.flat_map(idents::of_type));
    }
}

impl<'a> Visit<'a> for Holders {
    fn visit_item_struct(&mut self, item: &'a syn::ItemStruct) {
        self.add(&item.ident, item.fields.iter().map(|field| &field.ty));
    }

    fn visit_item_enum(&mut self, item: &'a syn::ItemEnum) {
        let fields = item.variants.iter().flat_map(|variant| &variant.fields);
        self.add(&item.ident, fields.map(|field| &field.ty));
    }

    fn visit_item_type(&mut self, item: &'a syn::ItemType) {
        self.add(&item.ident, std::iter::once(&*item.ty));
    }
}

struct Statics<'a> {
    with_cells: &'a BTreeSet<String>,
    found: Vec<String>,
}

impl<'a> Visit<'a> for Statics<'_> {
    fn visit_item_static(&mut self, item: &'a syn::ItemStatic) {
        let names = idents::of_type(&item.ty);
        let is_mutable = matches!(item.mutability, syn::StaticMutability::Mut(_))
            || names.iter().any(|name| is_cell(name) || self.with_cells.contains(name));
        if is_mutable {
            self.found.push(item.ident.to_string());
        }
        visit::visit_item_static(self, item);
    }

    /// Every `static` in a macro counts: those of `thread_local!`, and what a macro defines.
    fn visit_macro(&mut self, invoked: &'a syn::Macro) {
        let mut tokens = idents::flat(invoked.tokens.clone()).into_iter().peekable();
        while let Some(token) = tokens.next() {
            if matches!(&token, TokenTree::Ident(ident) if *ident == "static")
                && let Some(TokenTree::Ident(name)) = tokens.peek()
            {
                self.found.push(name.to_string());
            }
        }
    }
}
