//! `/symbolicate/v5`: functions, files, lines and inlined functions of addresses.

use super::Modules;
use crate::symbolizer::Symbol;
use serde_json::{Map, Value, json};

/// Addresses of one question.
const MAX_FRAMES: usize = 100_000;

/// The answer; an error says what is wrong with the question.
pub fn symbolicate(question: &Value, modules: &impl Modules) -> Result<Value, String> {
    // One job may stand there by itself.
    let alone = std::slice::from_ref(question);
    let jobs = question.get("jobs").and_then(Value::as_array).map_or(alone, Vec::as_slice);
    let mut left = MAX_FRAMES;
    let results = jobs.iter().map(|job| result(job, modules, &mut left)).collect::<Result<Vec<_>, _>>()?;
    Ok(json!({ "results": results }))
}

fn result(job: &Value, modules: &impl Modules, left: &mut usize) -> Result<Value, String> {
    let list = |field: &str| job.get(field).and_then(Value::as_array).ok_or(format!("{field} is no list"));
    let memory_map: Vec<(&str, &str)> = list("memoryMap")?
        .iter()
        .map(|pair| Some((pair.get(0)?.as_str()?, pair.get(1)?.as_str()?)))
        .collect::<Option<_>>()
        .ok_or("memoryMap is no list of names and ids")?;
    let mut found = Map::new();
    for (name, id) in &memory_map {
        found.insert(format!("{name}/{id}"), modules.has(name, id).into());
    }
    let mut stacks = Vec::new();
    for stack in list("stacks")? {
        let frames = stack.as_array().ok_or("a stack is no list")?;
        *left = left.checked_sub(frames.len()).ok_or(format!("more than {MAX_FRAMES} addresses"))?;
        let frames = frames.iter().enumerate().map(|(number, frame)| {
            let pair = (|| Some((frame.get(0)?.as_i64()?, frame.get(1)?.as_u64()?)))();
            let (index, offset) = pair.ok_or("a frame is no pair of numbers")?;
            let module = usize::try_from(index).ok().and_then(|index| memory_map.get(index));
            Ok(one(number, module, offset, modules))
        });
        stacks.push(frames.collect::<Result<Vec<_>, String>>()?);
    }
    Ok(json!({ "stacks": stacks, "found_modules": found }))
}

fn one(number: usize, module: Option<&(&str, &str)>, offset: u64, modules: &impl Modules) -> Value {
    let mut frame = Map::new();
    frame.insert("frame".into(), number.into());
    frame.insert("module_offset".into(), format!("{offset:#x}").into());
    frame.insert("module".into(), module.map_or("<unknown>", |(name, _)| name).into());
    let functions = module.and_then(|(name, id)| modules.functions(name, id, offset));
    if let Some((outer, inlined)) = functions.as_deref().and_then(<[Symbol]>::split_last) {
        frame.insert("function_offset".into(), format!("{:#x}", outer.offset).into());
        put_function(outer, &mut frame);
        if !inlined.is_empty() {
            let inlines = inlined.iter().map(|function| {
                let mut inline = Map::new();
                put_function(function, &mut inline);
                Value::Object(inline)
            });
            frame.insert("inlines".into(), inlines.collect());
        }
    }
    Value::Object(frame)
}

fn put_function(function: &Symbol, into: &mut Map<String, Value>) {
    into.insert("function".into(), (*function.name).into());
    if let Some(file) = &function.file {
        into.insert("file".into(), (**file).into());
    }
    if let Some(line) = function.line {
        into.insert("line".into(), line.into());
    }
}
