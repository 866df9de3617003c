//! Items are public for another crate's product code, and not for tests.
//!
//! An item counts as used where its name occurs outside of its definition, of re-exports and of
//! what tests are compiled with. Another item of the same name hides a finding, so not all are
//! found.

use crate::workspace::{Module, Package};
use proc_macro2::{Ident, TokenTree};
use std::collections::{BTreeMap, BTreeSet};
use syn::Visibility;
use syn::visit::{self, Visit};

/// Public items of the product's packages that only tests use, as `file: name`.
pub fn only_tests_use(products: &[Package]) -> BTreeSet<String> {
    let modules: Vec<Module> =
        products.iter().flat_map(Package::product_crates).flat_map(|of| of.modules).collect();
    let mut uses = Uses::default();
    modules.iter().for_each(|module| uses.visit_file(&module.syntax));
    let mut found = BTreeSet::new();
    for module in &modules {
        let mut public = Public::default();
        public.visit_file(&module.syntax);
        let unused = public.found.into_iter().filter(|name| !uses.found.contains_key(name));
        found.extend(unused.map(|name| format!("{}: {name}", module.file)));
    }
    found
}

/// Names of public functions, constants, statics and types.
#[derive(Default)]
struct Public {
    found: Vec<String>,
}

impl Public {
    fn add(&mut self, visibility: &Visibility, ident: &Ident, attributes: &[syn::Attribute]) {
        // The loader finds these.
        let is_exported = attributes.iter().any(|attribute| match &attribute.meta {
            syn::Meta::List(list) => list.path.is_ident("unsafe"),
            _ => false,
        });
        if matches!(visibility, Visibility::Public(_)) && !is_exported {
            self.found.push(ident.to_string());
        }
    }
}

impl<'a> Visit<'a> for Public {
    fn visit_item(&mut self, item: &'a syn::Item) {
        match item {
            syn::Item::Const(item) => self.add(&item.vis, &item.ident, &item.attrs),
            syn::Item::Enum(item) => self.add(&item.vis, &item.ident, &item.attrs),
            syn::Item::Fn(item) => self.add(&item.vis, &item.sig.ident, &item.attrs),
            syn::Item::Static(item) => self.add(&item.vis, &item.ident, &item.attrs),
            syn::Item::Struct(item) => self.add(&item.vis, &item.ident, &item.attrs),
            syn::Item::Trait(item) => self.add(&item.vis, &item.ident, &item.attrs),
            syn::Item::Type(item) => self.add(&item.vis, &item.ident, &item.attrs),
            _ => {}
        }
        visit::visit_item(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'a syn::ImplItemFn) {
        self.add(&item.vis, &item.sig.ident, &item.attrs);
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_impl_item_const(&mut self, item: &'a syn::ImplItemConst) {
        self.add(&item.vis, &item.ident, &item.attrs);
    }
}

/// Names that are used, and how often.
#[derive(Default)]
struct Uses {
    found: BTreeMap<String, usize>,
}

impl<'a> Visit<'a> for Uses {
    fn visit_ident(&mut self, ident: &'a Ident) {
        *self.found.entry(ident.to_string()).or_default() += 1;
    }

    fn visit_item(&mut self, item: &'a syn::Item) {
        match item {
            syn::Item::Const(item) => {
                self.visit_type(&item.ty);
                self.visit_expr(&item.expr);
            }
            syn::Item::Static(item) => {
                self.visit_type(&item.ty);
                self.visit_expr(&item.expr);
            }
            syn::Item::Enum(item) => {
                self.visit_generics(&item.generics);
                item.variants.iter().for_each(|variant| self.visit_variant(variant));
            }
            syn::Item::Struct(item) => {
                self.visit_generics(&item.generics);
                self.visit_fields(&item.fields);
            }
            syn::Item::Type(item) => self.visit_type(&item.ty),
            syn::Item::Trait(item) => {
                item.supertraits.iter().for_each(|bound| self.visit_type_param_bound(bound));
                item.items.iter().for_each(|item| self.visit_trait_item(item));
            }
            syn::Item::Impl(item) => {
                self.visit_generics(&item.generics);
                item.trait_.iter().for_each(|(_, path, _)| self.visit_path(path));
                item.items.iter().for_each(|item| self.visit_impl_item(item));
            }
            syn::Item::Use(item) if matches!(item.vis, Visibility::Public(_)) => {}
            item => visit::visit_item(self, item),
        }
    }

    fn visit_impl_item_const(&mut self, item: &'a syn::ImplItemConst) {
        self.visit_type(&item.ty);
        self.visit_expr(&item.expr);
    }

    fn visit_signature(&mut self, signature: &'a syn::Signature) {
        self.visit_generics(&signature.generics);
        signature.inputs.iter().for_each(|input| self.visit_fn_arg(input));
        self.visit_return_type(&signature.output);
    }

    fn visit_macro(&mut self, invoked: &'a syn::Macro) {
        visit::visit_macro(self, invoked);
        for token in crate::idents::flat(invoked.tokens.clone()) {
            if let TokenTree::Ident(ident) = token {
                self.visit_ident(&ident.clone());
            }
        }
    }

    fn visit_attribute(&mut self, _: &'a syn::Attribute) {}
}
