//! `/asm/v1`: instructions, read from memory, which may differ from the file. The disassembler is
//! in libraries that are built with the feature `asm`.

use super::modules::Modules;
use serde_json::Value;

/// Code of one answer.
#[cfg(feature = "asm")]
const MAX_BYTES: u64 = 64 << 10;

#[cfg(not(feature = "asm"))]
pub(super) fn answer(_question: &Value, _modules: &Modules<'_>) -> Result<Value, String> {
    Err("this library was built without a disassembler (cargo feature asm)".into())
}

#[cfg(feature = "asm")]
pub(super) fn answer(question: &Value, modules: &Modules<'_>) -> Result<Value, String> {
    let text = |field: &str| question.get(field).and_then(Value::as_str).unwrap_or_default();
    let number = |field: &str| {
        let digits = text(field).trim_start_matches("0x");
        u64::from_str_radix(digits, 16).map_err(|_| format!("{field} is no hexadecimal number"))
    };
    let (start, size) = (number("startAddress")?, number("size")?);
    let place = modules.place(text("debugName"), text("debugId"), start);
    let place = place.ok_or("there is no code of a module with this debugName and debugId")?;
    // All of it is code of the module.
    let end = place.address.saturating_add(size.clamp(1, MAX_BYTES)).min(place.code.high);
    let mut code = vec![0; usize::try_from(end - place.address).unwrap_or(0)];
    let read = swipr_unwind::memory::guarded_copy(place.address, &mut code);
    code.truncate(read);
    if code.is_empty() {
        return Err("the code is not mapped any more".into());
    }
    Ok(serde_json::json!({
        "startAddress": text("startAddress"),
        "size": format!("{:#x}", code.len()),
        "arch": "x86_64",
        "syntax": ["Intel"],
        "instructions": instructions(&code),
    }))
}

/// Offset and text of each; a byte that begins no instruction is one by itself.
#[cfg(feature = "asm")]
fn instructions(code: &[u8]) -> Vec<(usize, String)> {
    use yaxpeax_arch::{Decoder, LengthedInstruction, U8Reader};
    use yaxpeax_x86::long_mode::InstDecoder;
    let decoder = InstDecoder::default();
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(rest) = code.get(at..).filter(|rest| !rest.is_empty()) {
        let (text, length) = match decoder.decode(&mut U8Reader::new(rest)) {
            Ok(instruction) => (instruction.to_string(), instruction.len().to_const() as usize),
            Err(_) => (format!(".byte {:#04x}", rest[0]), 1),
        };
        found.push((at, text));
        at += length.max(1);
    }
    found
}

#[cfg(all(test, feature = "asm"))]
mod tests {
    use super::instructions;

    #[test]
    fn instructions_have_their_offsets_and_what_is_none_is_a_byte() {
        let found = instructions(&[0x55, 0x48, 0x89, 0xe5, 0x06, 0xc3]);
        let text: Vec<_> = found.iter().map(|(at, text)| format!("{at} {text}")).collect();
        assert_eq!(text, ["0 push rbp", "1 mov rbp, rsp", "4 .byte 0x06", "5 ret"]);
    }
}
