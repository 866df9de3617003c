//! Which module of a crate takes names from which other one.

use crate::idents::flat;
use crate::workspace::{Crate, Module};
use proc_macro2::TokenTree;
use std::collections::{BTreeMap, BTreeSet};
use syn::visit::{self, Visit};
use syn::{Item, UseTree};

/// Arrows between top-level modules, each with the places that make it.
pub type Arrows = BTreeMap<(String, String), BTreeSet<String>>;

/// The arrows of one crate. The root itself is no module.
pub fn of(of: &Crate) -> Arrows {
    let mut arrows = Arrows::new();
    let tops: BTreeSet<String> = of
        .modules
        .iter()
        .filter(|module| module.path.len() == 1)
        .map(|module| module.path[0].clone())
        .collect();
    let given = of.modules.first().map(names_given_by_root).unwrap_or_default();
    for module in of.modules.iter().filter(|module| !module.path.is_empty()) {
        let mut names = Names { at: module.path.clone(), found: Vec::new() };
        names.visit_file(&module.syntax);
        for (path, line) in names.found {
            let Some(first) = path.first() else { continue };
            let top = if tops.contains(first) { Some(first) } else { given.get(first) };
            if let Some(top) = top.filter(|top| **top != module.path[0]) {
                let place = format!("{}:{line} {}", module.file, path.join("::"));
                arrows.entry((module.path[0].clone(), top.clone())).or_default().insert(place);
            }
        }
    }
    arrows
}

/// Whether a way leads from one module to another.
pub fn lead(arrows: &BTreeSet<&(String, String)>, from: &str, to: &str) -> bool {
    let mut seen = BTreeSet::new();
    let mut open = vec![from];
    while let Some(at) = open.pop() {
        if at == to {
            return true;
        }
        if seen.insert(at) {
            open.extend(arrows.iter().filter(|arrow| arrow.0 == at).map(|arrow| arrow.1.as_str()));
        }
    }
    false
}

/// Names that the root imports, with the top-level modules they are from.
fn names_given_by_root(root: &Module) -> BTreeMap<String, String> {
    let mut names = BTreeMap::new();
    for item in &root.syntax.items {
        let Item::Use(item) = item else { continue };
        for path in paths(&item.tree, Vec::new()) {
            let path: Vec<&(String, usize)> =
                path.iter().filter(|(name, _)| name != "crate" && name != "self").collect();
            if let [(module, _), .., (name, _)] = path[..] {
                names.insert(name.clone(), module.clone());
            }
        }
    }
    names
}

/// The paths of an import, with lines.
fn paths(tree: &UseTree, before: Vec<(String, usize)>) -> Vec<Vec<(String, usize)>> {
    let with = |ident: &proc_macro2::Ident| {
        before.iter().cloned().chain([(ident.to_string(), ident.span().start().line)]).collect::<Vec<_>>()
    };
    match tree {
        UseTree::Path(path) => paths(&path.tree, with(&path.ident)),
        UseTree::Name(name) => vec![with(&name.ident)],
        UseTree::Rename(name) => vec![with(&name.ident)],
        UseTree::Glob(_) => vec![before],
        UseTree::Group(group) => group.items.iter().flat_map(|tree| paths(tree, before.clone())).collect(),
    }
}

/// The paths of a module that start at the crate's root.
struct Names {
    /// Where paths are read: the module, and modules in braces in it.
    at: Vec<String>,
    found: Vec<(Vec<String>, usize)>,
}

impl Names {
    fn add(&mut self, path: &[(String, usize)]) {
        let line = path.first().map_or(0, |(_, line)| *line);
        let mut names = path.iter().map(|(name, _)| name.clone()).peekable();
        let mut absolute = match names.peek().map(String::as_str) {
            Some("crate") => Vec::new(),
            Some("self" | "super") => self.at.clone(),
            _ => return,
        };
        while let Some(name) = names.next_if(|name| ["crate", "self", "super"].contains(&name.as_str())) {
            if name == "super" {
                absolute.pop();
            }
        }
        absolute.extend(names);
        self.found.push((absolute, line));
    }
}

impl<'a> Visit<'a> for Names {
    fn visit_item_mod(&mut self, module: &'a syn::ItemMod) {
        self.at.push(module.ident.to_string());
        visit::visit_item_mod(self, module);
        self.at.pop();
    }

    fn visit_item_use(&mut self, item: &'a syn::ItemUse) {
        for path in paths(&item.tree, Vec::new()) {
            self.add(&path);
        }
    }

    fn visit_path(&mut self, path: &'a syn::Path) {
        let names: Vec<_> = path
            .segments
            .iter()
            .map(|segment| (segment.ident.to_string(), segment.ident.span().start().line))
            .collect();
        self.add(&names);
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, invoked: &'a syn::Macro) {
        visit::visit_macro(self, invoked);
        let tokens = flat(invoked.tokens.clone());
        for start in 0..tokens.len() {
            let mut path = Vec::new();
            let mut at = start;
            while let Some(TokenTree::Ident(ident)) = tokens.get(at) {
                path.push((ident.to_string(), ident.span().start().line));
                let colons = tokens.get(at + 1..at + 3).unwrap_or_default();
                if !colons.iter().all(|token| token.to_string() == ":") || colons.len() != 2 {
                    break;
                }
                at += 3;
            }
            self.add(&path);
        }
    }

    fn visit_attribute(&mut self, _: &'a syn::Attribute) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    fn module(path: &[&str], text: &str) -> Module {
        Module {
            path: path.iter().map(ToString::to_string).collect(),
            file: path.join("/"),
            syntax: syn::parse_str(text).expect("Rust"),
        }
    }

    #[test]
    fn arrows_are_found_in_imports_paths_and_macros() {
        let modules = vec![
            module(&[], "mod a; mod b; mod c; mod d; mod e; pub use e::Given;"),
            module(&["a"], "use crate::{b::B, a::own}; fn f() { say!(\"\", crate::c::C) }"),
            module(&["b"], "fn f() -> super::d::D { crate::Given }"),
            module(&["b", "inner"], "use super::super::c;"),
            module(&["c"], "mod braces { use super::super::d; }"),
            module(&["d"], "use std::d; use self::a;"),
            module(&["e"], ""),
        ];
        let arrows = of(&Crate { modules });
        let found: Vec<String> = arrows.keys().map(|(from, to)| format!("{from}{to}")).collect();
        assert_eq!(found, ["ab", "ac", "bc", "bd", "be", "cd"]);
    }

    #[test]
    fn a_way_leads_along_arrows() {
        let arrows = [("a", "b"), ("b", "c")].map(|(from, to)| (from.to_string(), to.to_string()));
        let arrows = arrows.iter().collect();
        assert!(lead(&arrows, "a", "c"));
        assert!(!lead(&arrows, "c", "a"));
    }
}
