//! `/source/v1`: a source file. It is sent only if the debug information of the requested address
//! names it: no other file of the machine can be read.

use super::Modules;
use serde_json::{Value, json};
use std::fs::OpenOptions;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;

/// Longer files are no sources.
const MAX_BYTES: u64 = 16 << 20;

/// The answer; an error says why there is none.
pub fn source(question: &Value, modules: &impl Modules) -> Result<Value, String> {
    let text = |field: &str| question.get(field).and_then(Value::as_str).unwrap_or_default();
    let (name, debug_id) = (text("debugName"), text("debugId"));
    if !modules.has(name, debug_id) {
        return Err("no module has this debugName and debugId".into());
    }
    let offset = u64::from_str_radix(text("moduleOffset").trim_start_matches("0x"), 16);
    let offset = offset.map_err(|_| "moduleOffset is no hexadecimal number")?;
    let functions = modules.functions(name, debug_id, offset).ok_or("there is no code of the module")?;
    let wanted = question.get("file").and_then(Value::as_str).ok_or("file is missing")?;
    if !functions.iter().any(|function| function.file.as_deref() == Some(wanted)) {
        return Err("the debug information at this moduleOffset names no such file".into());
    }
    let text = read(wanted).map_err(|error| format!("cannot read the file: {error}"))?;
    Ok(json!({ "symbolsLastModified": null, "sourceLastModified": null, "file": wanted, "source": text }))
}

fn read(path: &str) -> std::io::Result<String> {
    let refused = |what: &str| std::io::Error::other(what.to_owned());
    if !path.starts_with('/') {
        return Err(refused("its path is relative"));
    }
    // A fifo's writer is not waited for.
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path)?;
    let about = file.metadata()?;
    if !about.is_file() || about.len() > MAX_BYTES {
        return Err(refused("it is no regular file, or too long"));
    }
    let mut bytes = Vec::new();
    file.take(MAX_BYTES).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
