//! A profile's tables, as they stand in the file.

use crate::read::protobuf::{Value, fields};
use rustc_hash::FxHashMap;

/// The profile's tables, as they stand in the file; texts are places in `strings`.
#[derive(Default)]
pub struct PprofProfile<'a> {
    pub sample_types: Vec<(u64, u64)>,
    pub samples: Vec<Sample>,
    pub mappings: FxHashMap<u64, RawMapping>,
    pub locations: FxHashMap<u64, Location>,
    pub functions: FxHashMap<u64, RawFunction>,
    pub strings: Vec<&'a [u8]>,
    pub time_ns: u64,
    pub duration_ns: u64,
    pub period_type: (u64, u64),
    pub period: u64,
    /// The mapping that was written first: the program's.
    pub program: Option<u64>,
    pub comments: Vec<u64>,
    /// The kind of value that is meant, where there are several.
    pub default_type: u64,
}

#[derive(Default)]
pub struct Sample {
    pub locations: Vec<u64>,
    pub values: Vec<u64>,
    /// Key, text, number.
    pub labels: Vec<(u64, u64, u64)>,
}

#[derive(Default)]
pub struct RawMapping {
    pub start: u64,
    pub end: u64,
    pub offset: u64,
    pub file: u64,
    pub build_id: u64,
}

#[derive(Default)]
pub struct Location {
    pub mapping: u64,
    pub address: u64,
    /// Function and line.
    pub lines: Vec<(u64, u64)>,
}

#[derive(Default)]
pub struct RawFunction {
    pub name: u64,
    pub system_name: u64,
    pub file: u64,
}

impl<'a> PprofProfile<'a> {
    pub fn parse(bytes: &'a [u8]) -> Result<PprofProfile<'a>, String> {
        let mut profile = PprofProfile::default();
        fields(bytes, |field, value| {
            match field {
                1 => {
                    let (kind, unit) = pair(value)?;
                    profile.sample_types.push((kind, unit));
                }
                2 => profile.samples.push(sample(value)?),
                3 => profile.mapping(value)?,
                4 => profile.location(value)?,
                5 => profile.function(value)?,
                6 => profile.strings.push(value.bytes()),
                9 => profile.time_ns = value.number(),
                10 => profile.duration_ns = value.number(),
                11 => profile.period_type = pair(value)?,
                12 => profile.period = value.number(),
                13 => value.numbers(&mut profile.comments)?,
                14 => profile.default_type = value.number(),
                _ => {}
            }
            Ok(())
        })?;
        Ok(profile)
    }

    fn mapping(&mut self, value: Value<'a>) -> Result<(), String> {
        let (mut id, mut mapping) = (0, RawMapping::default());
        fields(value.bytes(), |field, value| {
            match field {
                1 => id = value.number(),
                2 => mapping.start = value.number(),
                3 => mapping.end = value.number(),
                4 => mapping.offset = value.number(),
                5 => mapping.file = value.number(),
                6 => mapping.build_id = value.number(),
                _ => {}
            }
            Ok(())
        })?;
        self.program.get_or_insert(id);
        self.mappings.insert(id, mapping);
        Ok(())
    }

    fn location(&mut self, value: Value<'a>) -> Result<(), String> {
        let (mut id, mut location) = (0, Location::default());
        fields(value.bytes(), |field, value| {
            match field {
                1 => id = value.number(),
                2 => location.mapping = value.number(),
                3 => location.address = value.number(),
                4 => location.lines.push(pair(value)?),
                _ => {}
            }
            Ok(())
        })?;
        self.locations.insert(id, location);
        Ok(())
    }

    fn function(&mut self, value: Value<'a>) -> Result<(), String> {
        let (mut id, mut function) = (0, RawFunction::default());
        fields(value.bytes(), |field, value| {
            match field {
                1 => id = value.number(),
                2 => function.name = value.number(),
                3 => function.system_name = value.number(),
                4 => function.file = value.number(),
                _ => {}
            }
            Ok(())
        })?;
        self.functions.insert(id, function);
        Ok(())
    }

    pub fn text(&self, place: u64) -> String {
        let bytes = usize::try_from(place).ok().and_then(|place| self.strings.get(place));
        bytes.map_or_else(String::new, |bytes| String::from_utf8_lossy(bytes).into_owned())
    }
}

fn sample(value: Value<'_>) -> Result<Sample, String> {
    let mut sample = Sample::default();
    fields(value.bytes(), |field, value| {
        match field {
            1 => value.numbers(&mut sample.locations)?,
            2 => value.numbers(&mut sample.values)?,
            3 => {
                let mut label = (0, 0, 0);
                fields(value.bytes(), |field, value| {
                    match field {
                        1 => label.0 = value.number(),
                        2 => label.1 = value.number(),
                        3 => label.2 = value.number(),
                        _ => {}
                    }
                    Ok(())
                })?;
                sample.labels.push(label);
            }
            _ => {}
        }
        Ok(())
    })?;
    Ok(sample)
}

/// Fields 1 and 2.
fn pair(value: Value<'_>) -> Result<(u64, u64), String> {
    let mut pair = (0, 0);
    fields(value.bytes(), |field, value| {
        match field {
            1 => pair.0 = value.number(),
            2 => pair.1 = value.number(),
            _ => {}
        }
        Ok(())
    })?;
    Ok(pair)
}
