//! The rules: each gives what is found in the sources, to be compared with its list.

pub mod comment_width;
pub mod floors;
pub mod function_length;
pub mod module_cycles;
pub mod names_in_comments;
pub mod public_items;
pub mod statics;
pub mod type_names;
