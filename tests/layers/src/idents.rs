//! The identifiers of a type, and the tokens of a macro.

use proc_macro2::{Ident, TokenStream, TokenTree};
use syn::visit::Visit;

/// The identifiers of a type, without what is given to functions that it points to.
pub fn of_type(of: &syn::Type) -> Vec<String> {
    let mut idents = Idents::default();
    idents.visit_type(of);
    idents.found
}

/// All tokens of a macro, without groups.
pub fn flat(tokens: TokenStream) -> Vec<TokenTree> {
    let mut found = Vec::new();
    for token in tokens {
        match token {
            TokenTree::Group(group) => found.extend(flat(group.stream())),
            token => found.push(token),
        }
    }
    found
}

#[derive(Default)]
struct Idents {
    found: Vec<String>,
}

impl<'a> Visit<'a> for Idents {
    fn visit_ident(&mut self, ident: &'a Ident) {
        self.found.push(ident.to_string());
    }

    fn visit_type_bare_fn(&mut self, _: &'a syn::TypeBareFn) {}
}
