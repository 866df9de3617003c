//! Requests that are answered from a recording's mappings and not from its samples: names of
//! addresses, and a list of all code.

use super::names::StackSymbolizer;
use crate::stack::CodeAddress;
use std::fmt::Write;
use swipr_formats::names::{UNKNOWN, printable};
use swipr_server::recording::WriterTask;

/// The answer as text, for pprof's symbol protocol and for people.
pub fn answer(purpose: &WriterTask, names: &mut StackSymbolizer) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    match purpose {
        WriterTask::Samples | WriterTask::Keep(_) | WriterTask::Last(_) => {}
        WriterTask::Names(addresses) => {
            text.push_str("num_symbols: 1\n");
            for &address in addresses {
                // pprof sends the address of the call, one byte before the return address.
                let frame = names.known(CodeAddress { address, exact: true });
                let name = frame.as_ref().and_then(|frame| frame.functions.last());
                let name = name.map_or(UNKNOWN.into(), |function| printable(&function.name));
                let _ = writeln!(text, "{address:#x} {name}");
            }
        }
        WriterTask::Code => {
            for code in names.code() {
                let module = &code.module;
                let id: String = module.build_id.iter().map(|byte| format!("{byte:02x}")).collect();
                let offset = code.low.wrapping_sub(module.start).wrapping_add(module.file_offset);
                let path = printable(&module.path);
                let id = if id.is_empty() { "-" } else { &id };
                let _ = writeln!(text, "{:016x}-{:016x} {offset:08x} {id} {path}", code.low, code.high);
            }
        }
    }
    text
}
