//! Functions have at most 60 lines.

use crate::workspace::Package;
use std::collections::BTreeSet;
use syn::visit::{self, Visit};

/// Longer functions, as `file: function`.
pub fn longer_functions(packages: &[Package]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for module in packages.iter().flat_map(Package::crates).flat_map(|of| of.modules) {
        let mut lengths = Lengths::default();
        lengths.visit_file(&module.syntax);
        let long = lengths.found.into_iter().filter(|(_, lines)| *lines > 60);
        found.extend(long.map(|(name, _)| format!("{}: {name}", module.file)));
    }
    found
}

#[derive(Default)]
struct Lengths {
    found: Vec<(String, usize)>,
}

impl Lengths {
    fn add(&mut self, signature: &syn::Signature, block: &syn::Block) {
        let first = signature.fn_token.span.start().line;
        let last = block.brace_token.span.close().end().line;
        self.found.push((signature.ident.to_string(), last + 1 - first));
    }
}

impl<'a> Visit<'a> for Lengths {
    fn visit_item_fn(&mut self, item: &'a syn::ItemFn) {
        self.add(&item.sig, &item.block);
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'a syn::ImplItemFn) {
        self.add(&item.sig, &item.block);
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'a syn::TraitItemFn) {
        if let Some(block) = &item.default {
            self.add(&item.sig, block);
        }
        visit::visit_trait_item_fn(self, item);
    }
}
