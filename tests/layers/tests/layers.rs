//! The rules of the workspace, a test each. What each allows is in `lists/`.

use std::collections::BTreeSet;
use swipr_layers::rules::{
    comment_width, floors, function_length, module_cycles, names_in_comments, public_items, statics,
    type_names,
};
use swipr_layers::{list, workspace};

/// Packages that users get. The others are tests.
const PRODUCTS: [&str; 11] = [
    "swipr-unwind",
    "swipr-unwind-tables",
    "swipr-symbols",
    "swipr-formats",
    "swipr-offline",
    "swipr-os",
    "swipr-runtimes",
    "swipr-server",
    "swipr",
    "libswipr",
    "swipr-cli",
];

#[test]
fn no_top_level_modules_import_each_other_in_a_cycle() {
    let listed: BTreeSet<String> = list::read("cycles").into_keys().collect();
    let found = module_cycles::arrows_on_cycles(&workspace::packages(), &listed);
    for (arrow, places) in found.iter().filter(|(arrow, _)| !listed.contains(*arrow)) {
        println!("{arrow}\n  {}", places.join("\n  "));
    }
    list::assert_equal("cycles", &found.into_keys().collect(), "Modules import each other one way only");
}

#[test]
fn packages_depend_on_lower_floors_only() {
    list::assert_equal("floors", &floors::dependencies(&workspace::packages()), "Each dependency is listed");
}

#[test]
fn every_mutable_static_has_a_reason() {
    let packages = products();
    list::assert_equal(
        "statics",
        &statics::mutable(&packages),
        "Every mutable static is listed with its reason",
    );
}

#[test]
fn lines_of_comments_end_at_column_100() {
    let found = comment_width::files(&workspace::root(), &workspace::files());
    list::assert_equal("comment-width", &found, "Lines of comments have at most 100 columns");
}

#[test]
fn functions_have_at_most_60_lines() {
    let found = function_length::longer_functions(&products());
    list::assert_equal("function-length", &found, "Functions have at most 60 lines");
}

#[test]
fn no_two_types_of_a_crate_have_one_name() {
    list::assert_equal(
        "type-names",
        &type_names::repeated(&products()),
        "A type's name is its own in its crate",
    );
}

#[test]
fn files_and_members_that_comments_name_are_there() {
    let found = names_in_comments::missing(&workspace::root(), &workspace::files());
    list::assert_equal("names-in-comments", &found, "What comments name exists");
}

#[test]
fn nothing_is_public_for_tests_only() {
    let found = public_items::only_tests_use(&products());
    list::assert_equal("public-items", &found, "What is public is used by another crate's product code");
}

fn products() -> Vec<workspace::Package> {
    let mut packages = workspace::packages();
    packages.retain(|package| PRODUCTS.contains(&package.name.as_str()));
    packages
}
