//! Files and members of types that comments name are there.

use crate::comments;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use syn::visit::{self, Visit};

/// What comments name and is not there, as `file: name`.
pub fn missing(root: &Path, files: &[String]) -> BTreeSet<String> {
    let texts: Vec<(&String, String)> = files
        .iter()
        .filter(|file| file.ends_with(".rs"))
        .map(|file| (file, std::fs::read_to_string(root.join(file)).unwrap_or_default()))
        .collect();
    let mut members = Members::default();
    for (_, text) in &texts {
        if let Ok(syntax) = syn::parse_file(text) {
            members.visit_file(&syntax);
        }
    }
    let mut missing = BTreeSet::new();
    for (file, text) in &texts {
        for comment in comments::of(text) {
            let gone = |name: &&str| is_missing_file(name, file, files) || members.lack(name);
            missing
                .extend(marked(&comment.text).into_iter().filter(gone).map(|name| format!("{file}: {name}")));
        }
    }
    missing
}

/// What stands in backquotes in a line, and in brackets of links.
fn marked(line: &str) -> Vec<&str> {
    let quoted = line.split('`').skip(1).step_by(2);
    let linked = line
        .split('[')
        .skip(1)
        .filter_map(|rest| rest.split_once(']'))
        .map(|(name, _)| name.trim_matches('`'));
    quoted.chain(linked).collect::<BTreeSet<_>>().into_iter().collect()
}

/// Whether `name` is that of a source file or a document that this repository has not.
fn is_missing_file(name: &str, at: &str, files: &[String]) -> bool {
    let is_path = name.chars().all(|c| c.is_ascii_alphanumeric() || "_-./".contains(c));
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    if !is_path || !["rs", "md", "c", "sh"].contains(&extension) || name.starts_with(['/', '.']) {
        return false;
    }
    let folder = at.rsplit_once('/').map_or("", |(folder, _)| folder);
    let is_it = |file: &String| {
        *file == format!("{folder}/{name}") || file == name || file.ends_with(&format!("/{name}"))
    };
    !files.iter().any(is_it)
}

/// Fields, variants, functions and constants, by the name of their type.
#[derive(Default)]
struct Members {
    of: BTreeMap<String, BTreeSet<String>>,
    used: BTreeSet<String>,
}

impl Members {
    /// Whether `name` is `Type::member` of a type that has no such member, or that is nowhere.
    fn lack(&self, name: &str) -> bool {
        let name = name.strip_suffix("()").unwrap_or(name);
        let parts: Vec<&str> = name.split("::").collect();
        let is_ident =
            |part: &&str| part.chars().all(|c| c.is_alphanumeric() || c == '_') && !part.is_empty();
        let [.., of, member] = parts[..] else { return false };
        if !parts.iter().all(is_ident) || !of.starts_with(char::is_uppercase) || of == "Self" {
            return false;
        }
        match self.of.get(of) {
            Some(members) => !members.contains(member),
            None => !self.used.contains(of),
        }
    }

    fn add(&mut self, of: &syn::Ident, members: impl Iterator<Item = String>) {
        self.of.entry(of.to_string()).or_default().extend(members);
    }
}

fn fields(fields: &syn::Fields) -> impl Iterator<Item = String> + '_ {
    fields.iter().filter_map(|field| field.ident.as_ref()).map(ToString::to_string)
}

impl<'a> Visit<'a> for Members {
    fn visit_ident(&mut self, ident: &'a syn::Ident) {
        self.used.insert(ident.to_string());
    }

    fn visit_item_struct(&mut self, item: &'a syn::ItemStruct) {
        self.add(&item.ident, fields(&item.fields));
        visit::visit_item_struct(self, item);
    }

    fn visit_item_enum(&mut self, item: &'a syn::ItemEnum) {
        self.add(&item.ident, item.variants.iter().map(|variant| variant.ident.to_string()));
        visit::visit_item_enum(self, item);
    }

    fn visit_item_trait(&mut self, item: &'a syn::ItemTrait) {
        let names = item.items.iter().filter_map(|item| match item {
            syn::TraitItem::Const(item) => Some(item.ident.to_string()),
            syn::TraitItem::Fn(item) => Some(item.sig.ident.to_string()),
            syn::TraitItem::Type(item) => Some(item.ident.to_string()),
            _ => None,
        });
        self.add(&item.ident, names);
        visit::visit_item_trait(self, item);
    }

    fn visit_item_impl(&mut self, item: &'a syn::ItemImpl) {
        let names = item.items.iter().filter_map(|item| match item {
            syn::ImplItem::Const(item) => Some(item.ident.to_string()),
            syn::ImplItem::Fn(item) => Some(item.sig.ident.to_string()),
            syn::ImplItem::Type(item) => Some(item.ident.to_string()),
            _ => None,
        });
        if let syn::Type::Path(of) = &*item.self_ty
            && let Some(of) = of.path.segments.last()
        {
            self.add(&of.ident, names);
        }
        visit::visit_item_impl(self, item);
    }

    fn visit_attribute(&mut self, _: &'a syn::Attribute) {}
}
