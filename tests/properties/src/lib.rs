//! What must hold whatever bytes come: for requests, object files, call frame information, stacks
//! and names from elsewhere.
//!
//! A property is a function of bytes, which panics where it does not hold; all are in
//! [`PROPERTIES`]. `cargo fuzz` looks for such bytes (`tests/fuzz/` has a target for each), and
//! this crate's test runs each on the inputs kept in `tests/fuzz/seeds` and on changes of them.
//! Some of it is useful to other tests: strict [`readers`] of the formats, recordings made by hand
//! ([`recording`], [`hostile`]), a plain interpreter of call frame information ([`meaning`]), and
//! an allocator that counts ([`counting`]).

mod arrays;
mod choices;
pub mod counting;
mod expressions;
mod frame_section;
pub mod hostile;
mod jit_code;
mod look_ups;
pub mod meaning;
mod names;
mod objects;
pub mod readers;
pub mod recording;
mod recordings;
mod requests;
mod rows;
mod walks;

pub use rows::{registers, says_the_same};

/// Something that must hold.
#[derive(Clone, Copy, Debug)]
pub struct Property {
    /// Its target's name, and that of its folder of inputs.
    pub name: &'static str,
    /// Panics where it does not hold.
    pub check: fn(&[u8]),
    /// Changed inputs that the test tries.
    pub tries: u32,
}

const fn property(name: &'static str, check: fn(&[u8]), tries: u32) -> Property {
    Property { name, check, tries }
}

/// Every property.
pub static PROPERTIES: &[Property] = &[
    property("http_head", requests::head, 20_000),
    property("http_query", requests::query, 20_000),
    property("http_conversation", requests::conversation, 3_000),
    property("json_request", requests::json, 20_000),
    property("frame_rows", rows::sound, 5_000),
    property("frame_sections", rows::any, 10_000),
    property("object_file", objects::check, 1_000),
    property("perf_map", jit_code::perf_map, 5_000),
    property("jitdump", jit_code::jitdump, 5_000),
    property("jit_object", jit_code::object, 2_000),
    property("demangle", names::check, 5_000),
    property("table_look_up", look_ups::check, 10_000),
    property("expression", expressions::check, 50_000),
    property("walk", walks::any, 5_000),
    property("walk_own_stack", walks::own, 3_000),
    property("recording", recordings::check, 2_000),
];

/// Checks the property of that name.
pub fn check(name: &str, bytes: &[u8]) {
    let property = PROPERTIES.iter().find(|property| property.name == name);
    (property.expect("a property of that name").check)(bytes);
}
