//! A pprof profile, read back as far as stacks of names need it: a value of each sample, its
//! thread and its state, and the
//! names of its lines. The value is the one that folded stacks have, too: nanoseconds of CPU time
//! where there are some, else the
//! first. Bytes are not trusted.

use std::collections::HashMap;
use std::io::Read;

use flate2::read::GzDecoder;

use super::{ReadError, Stacks};
use crate::Weight;

/// A profile that is larger when unpacked is refused.
const MAX_BYTES: u64 = 1 << 30;

/// A field of a message: its number and its value.
enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// Reads fields one after the other.
struct Fields<'a>(&'a [u8]);

const CUT: ReadError = ReadError::Broken("it ends in the middle of a field");

fn varint(bytes: &mut &[u8]) -> Result<u64, ReadError> {
    let mut number = 0u64;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first().ok_or(CUT)?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok(number);
        }
    }
    Err(ReadError::Broken("a number is too long"))
}

impl<'a> Fields<'a> {
    fn next(&mut self) -> Result<Option<(u64, Value<'a>)>, ReadError> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let key = varint(&mut self.0)?;
        let length = match key & 7 {
            0 => return Ok(Some((key >> 3, Value::Number(varint(&mut self.0)?)))),
            1 => 8,
            2 => usize::try_from(varint(&mut self.0)?).map_err(|_| CUT)?,
            5 => 4,
            _ => return Err(ReadError::Broken("a field of no known kind")),
        };
        let (bytes, rest) = self.0.split_at_checked(length).ok_or(CUT)?;
        self.0 = rest;
        Ok(Some((key >> 3, Value::Bytes(bytes))))
    }
}

/// Numbers of a list that is packed or not.
fn numbers(value: &Value<'_>, into: &mut Vec<u64>) -> Result<(), ReadError> {
    match value {
        Value::Number(number) => into.push(*number),
        Value::Bytes(bytes) => {
            let mut rest = *bytes;
            while !rest.is_empty() {
                into.push(varint(&mut rest)?);
            }
        }
    }
    Ok(())
}

/// Fields of a message that are numbers: those of these numbers, 0 where they are missing.
fn some<const N: usize>(bytes: &[u8], wanted: [u64; N]) -> Result<[u64; N], ReadError> {
    let mut found = [0; N];
    let mut fields = Fields(bytes);
    while let Some((field, value)) = fields.next()? {
        for (place, wanted) in found.iter_mut().zip(wanted) {
            if let (true, Value::Number(number)) = (wanted == field, &value) {
                *place = *number;
            }
        }
    }
    Ok(found)
}

#[derive(Default)]
struct Profile<'a> {
    strings: Vec<&'a [u8]>,
    /// Name by id.
    functions: HashMap<u64, u64>,
    /// Functions by id, innermost first.
    locations: HashMap<u64, Vec<u64>>,
    samples: Vec<&'a [u8]>,
    /// What the values of samples are.
    types: Vec<[u64; 2]>,
}

impl<'a> Profile<'a> {
    fn read(bytes: &'a [u8]) -> Result<Self, ReadError> {
        let mut profile = Profile::default();
        let mut fields = Fields(bytes);
        while let Some((field, value)) = fields.next()? {
            let Value::Bytes(bytes) = value else { continue };
            match field {
                1 => profile.types.push(some(bytes, [1, 2])?),
                2 => profile.samples.push(bytes),
                4 => profile.location(bytes)?,
                5 => {
                    let [id, name] = some(bytes, [1, 2])?;
                    profile.functions.insert(id, name);
                }
                6 => profile.strings.push(bytes),
                _ => {}
            }
        }
        match profile.strings.first() {
            Some([]) => Ok(profile),
            _ => Err(ReadError::Broken("its first string is not empty")),
        }
    }

    fn location(&mut self, bytes: &[u8]) -> Result<(), ReadError> {
        let [id] = some(bytes, [1])?;
        let mut lines = Vec::new();
        let mut fields = Fields(bytes);
        while let Some((field, value)) = fields.next()? {
            if let (4, Value::Bytes(line)) = (field, value) {
                let [function] = some(line, [1])?;
                lines.push(function);
            }
        }
        self.locations.insert(id, lines);
        Ok(())
    }

    fn string(&self, id: u64) -> String {
        let bytes = usize::try_from(id).ok().and_then(|id| self.strings.get(id)).copied().unwrap_or_default();
        String::from_utf8_lossy(bytes).into_owned()
    }

    /// Which value is nanoseconds of CPU time.
    fn cpu_time(&self) -> Option<usize> {
        self.types
            .iter()
            .position(|&[kind, unit]| self.string(kind) == "cpu" && self.string(unit) == "nanoseconds")
    }

    /// A sample's stack, outermost first, and its weight, which is the value of that number.
    fn sample(&self, bytes: &[u8], value: usize) -> Result<(Vec<String>, u64), ReadError> {
        let (mut locations, mut values, mut labels) = (Vec::new(), Vec::new(), HashMap::new());
        let mut fields = Fields(bytes);
        while let Some((field, value)) = fields.next()? {
            match (field, &value) {
                (1, value) => numbers(value, &mut locations)?,
                (2, value) => numbers(value, &mut values)?,
                (3, Value::Bytes(label)) => {
                    let [key, text] = some(label, [1, 2])?;
                    labels.insert(self.string(key), self.string(text));
                }
                _ => {}
            }
        }
        let mut stack = Vec::new();
        // As in folded stacks: what the thread waits for is the leaf.
        match labels.get("state").map(String::as_str) {
            Some("runnable") => stack.push("[waiting for a CPU]".to_owned()),
            Some("blocked") => stack.push(match labels.get("syscall") {
                Some(call) => format!("[blocked in {call}]"),
                None => "[blocked]".to_owned(),
            }),
            _ => {}
        }
        for location in locations {
            match self.locations.get(&location).map(Vec::as_slice) {
                Some([_, ..]) => {
                    let functions = self.locations.get(&location).into_iter().flatten();
                    stack.extend(
                        functions.map(|id| self.string(self.functions.get(id).copied().unwrap_or(0))),
                    );
                }
                Some([]) => stack.push("[unknown]".to_owned()),
                None => return Err(ReadError::Broken("a sample has a location that is not there")),
            }
        }
        stack.extend(labels.get("thread").map(|thread| crate::names::thread(thread)));
        stack.reverse();
        let weight = values.get(value).copied().ok_or(ReadError::Broken("a sample has no value"))?;
        Ok((stack, weight))
    }
}

pub(super) fn read(bytes: &[u8]) -> Result<Stacks, ReadError> {
    let mut unpacked = Vec::new();
    let bytes = match bytes.starts_with(&[0x1f, 0x8b]) {
        true => {
            let read = GzDecoder::new(bytes).take(MAX_BYTES).read_to_end(&mut unpacked);
            read.map_err(|_| ReadError::Broken("it cannot be unpacked"))?;
            &unpacked
        }
        false => bytes,
    };
    let profile = Profile::read(bytes)?;
    let cpu_time = profile.cpu_time();
    let unit = cpu_time.map(|_| Weight::Nanoseconds);
    let mut stacks = Stacks { unit, ..Stacks::default() };
    for sample in &profile.samples {
        let (stack, weight) = profile.sample(sample, cpu_time.unwrap_or(0))?;
        let sum = stacks.weights.entry(stack).or_default();
        *sum = sum.saturating_add(weight);
    }
    Ok(stacks)
}
