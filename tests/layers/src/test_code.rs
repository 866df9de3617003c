//! Takes out of a file what is compiled for tests only.

use syn::visit_mut::{self, VisitMut};
use syn::{Attribute, ImplItem, Item, Meta, Stmt, Token, punctuated::Punctuated};

/// Takes every item with `#[test]` or a `#[cfg]` that asks for tests out of `file`.
pub fn remove(file: &mut syn::File) {
    if file.attrs.iter().any(is_for_tests) {
        file.items.clear();
    }
    file.items.retain(|item| !attributes(item).iter().any(is_for_tests));
    Remover.visit_file_mut(file);
}

struct Remover;

impl VisitMut for Remover {
    fn visit_item_mod_mut(&mut self, module: &mut syn::ItemMod) {
        if let Some((_, items)) = &mut module.content {
            items.retain(|item| !attributes(item).iter().any(is_for_tests));
        }
        visit_mut::visit_item_mod_mut(self, module);
    }

    fn visit_item_impl_mut(&mut self, block: &mut syn::ItemImpl) {
        block.items.retain(|item| {
            let attributes = match item {
                ImplItem::Const(item) => &item.attrs,
                ImplItem::Fn(item) => &item.attrs,
                ImplItem::Type(item) => &item.attrs,
                _ => return true,
            };
            !attributes.iter().any(is_for_tests)
        });
        visit_mut::visit_item_impl_mut(self, block);
    }

    fn visit_block_mut(&mut self, block: &mut syn::Block) {
        block.stmts.retain(|statement| match statement {
            Stmt::Item(item) => !attributes(item).iter().any(is_for_tests),
            Stmt::Local(local) => !local.attrs.iter().any(is_for_tests),
            _ => true,
        });
        visit_mut::visit_block_mut(self, block);
    }
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Union(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

fn is_for_tests(attribute: &Attribute) -> bool {
    attribute.path().is_ident("test")
        || (attribute.path().is_ident("cfg")
            && attribute.parse_args().is_ok_and(|meta| asks_for_tests(&meta)))
}

/// Whether a condition of `#[cfg]` holds in tests only.
fn asks_for_tests(condition: &Meta) -> bool {
    match condition {
        Meta::Path(path) => path.is_ident("test"),
        Meta::List(list) => {
            let parts = list.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated);
            let parts: Vec<Meta> = parts.into_iter().flatten().collect();
            match list.path.get_ident().map(ToString::to_string).as_deref() {
                Some("all") => parts.iter().any(asks_for_tests),
                Some("any") => parts.iter().all(asks_for_tests),
                _ => false,
            }
        }
        Meta::NameValue(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use syn::visit::Visit;

    struct Names(String);

    impl<'a> Visit<'a> for Names {
        fn visit_ident(&mut self, ident: &'a syn::Ident) {
            self.0.push_str(&ident.to_string());
        }

        fn visit_attribute(&mut self, _: &'a syn::Attribute) {}
    }

    #[test]
    fn what_only_tests_are_compiled_with_is_left_out() {
        let mut file = syn::parse_str(
            "#[cfg(test)] mod a {} #[cfg(all(test, unix))] fn b() {} #[cfg(any(test, unix))] fn c() {}
             #[cfg(not(test))] fn d() {} impl E { #[cfg(test)] fn f() {} fn g() {} } #[test] fn h() {}",
        )
        .expect("Rust");
        super::remove(&mut file);
        let mut names = Names(String::new());
        names.visit_file(&file);
        assert_eq!(names.0, "cdEg");
    }
}
