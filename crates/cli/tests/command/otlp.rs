//! OTLP's messages as the protocol's definition has them (`profiles.proto`, v1development), read by
//! another implementation of protobuf; and what must hold of them.

use prost::Message;

#[derive(Clone, PartialEq, Message)]
pub struct Request {
    #[prost(message, repeated, tag = "1")]
    pub resource_profiles: Vec<ResourceProfiles>,
    #[prost(message, optional, tag = "2")]
    pub dictionary: Option<Dictionary>,
}

#[derive(Clone, PartialEq, Message)]
pub struct ResourceProfiles {
    #[prost(message, optional, tag = "1")]
    pub resource: Option<Resource>,
    #[prost(message, repeated, tag = "2")]
    pub scope_profiles: Vec<ScopeProfiles>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Resource {
    #[prost(message, repeated, tag = "1")]
    pub attributes: Vec<KeyValue>,
}

#[derive(Clone, PartialEq, Message)]
pub struct KeyValue {
    #[prost(string, tag = "1")]
    pub key: String,
    #[prost(message, optional, tag = "2")]
    pub value: Option<AnyValue>,
}

#[derive(Clone, PartialEq, Message)]
pub struct AnyValue {
    #[prost(string, optional, tag = "1")]
    pub string_value: Option<String>,
    #[prost(int64, optional, tag = "3")]
    pub int_value: Option<i64>,
}

#[derive(Clone, PartialEq, Message)]
pub struct ScopeProfiles {
    #[prost(message, optional, tag = "1")]
    pub scope: Option<Scope>,
    #[prost(message, repeated, tag = "2")]
    pub profiles: Vec<Profile>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Scope {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(string, tag = "2")]
    pub version: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct Profile {
    #[prost(message, optional, tag = "1")]
    pub sample_type: Option<ValueType>,
    #[prost(message, repeated, tag = "2")]
    pub samples: Vec<Sample>,
    #[prost(fixed64, tag = "3")]
    pub time_unix_nano: u64,
    #[prost(uint64, tag = "4")]
    pub duration_nano: u64,
    #[prost(message, optional, tag = "5")]
    pub period_type: Option<ValueType>,
    #[prost(int64, tag = "6")]
    pub period: i64,
    #[prost(bytes = "vec", tag = "7")]
    pub profile_id: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
pub struct ValueType {
    #[prost(int32, tag = "1")]
    pub type_strindex: i32,
    #[prost(int32, tag = "2")]
    pub unit_strindex: i32,
}

#[derive(Clone, PartialEq, Message)]
pub struct Sample {
    #[prost(int32, tag = "1")]
    pub stack_index: i32,
    #[prost(int32, repeated, tag = "2")]
    pub attribute_indices: Vec<i32>,
    #[prost(int32, tag = "3")]
    pub link_index: i32,
    #[prost(int64, repeated, tag = "4")]
    pub values: Vec<i64>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Dictionary {
    #[prost(message, repeated, tag = "1")]
    pub mapping_table: Vec<Mapping>,
    #[prost(message, repeated, tag = "2")]
    pub location_table: Vec<Location>,
    #[prost(message, repeated, tag = "3")]
    pub function_table: Vec<Function>,
    #[prost(message, repeated, tag = "4")]
    pub link_table: Vec<Link>,
    #[prost(string, repeated, tag = "5")]
    pub string_table: Vec<String>,
    #[prost(message, repeated, tag = "6")]
    pub attribute_table: Vec<Attribute>,
    #[prost(message, repeated, tag = "7")]
    pub stack_table: Vec<Stack>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Mapping {
    #[prost(uint64, tag = "1")]
    pub memory_start: u64,
    #[prost(uint64, tag = "2")]
    pub memory_limit: u64,
    #[prost(uint64, tag = "3")]
    pub file_offset: u64,
    #[prost(int32, tag = "4")]
    pub filename_strindex: i32,
    #[prost(int32, repeated, tag = "5")]
    pub attribute_indices: Vec<i32>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Location {
    #[prost(int32, tag = "1")]
    pub mapping_index: i32,
    #[prost(uint64, tag = "2")]
    pub address: u64,
    #[prost(message, repeated, tag = "3")]
    pub lines: Vec<Line>,
    #[prost(int32, repeated, tag = "4")]
    pub attribute_indices: Vec<i32>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Line {
    #[prost(int32, tag = "1")]
    pub function_index: i32,
    #[prost(int64, tag = "2")]
    pub line: i64,
}

#[derive(Clone, PartialEq, Message)]
pub struct Function {
    #[prost(int32, tag = "1")]
    pub name_strindex: i32,
    #[prost(int32, tag = "2")]
    pub system_name_strindex: i32,
    #[prost(int32, tag = "3")]
    pub filename_strindex: i32,
}

#[derive(Clone, PartialEq, Message)]
pub struct Link {}

#[derive(Clone, PartialEq, Message)]
pub struct Attribute {
    #[prost(int32, tag = "1")]
    pub key_strindex: i32,
    #[prost(message, optional, tag = "2")]
    pub value: Option<AnyValue>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Stack {
    #[prost(int32, repeated, tag = "1")]
    pub location_indices: Vec<i32>,
}

/// Every table begins with its empty entry, no entry is there twice, and every index is of an
/// entry.
pub fn check(request: &Request) {
    let tables = request.dictionary.as_ref().expect("tables");
    assert_eq!(tables.mapping_table.first(), Some(&Mapping::default()));
    assert_eq!(tables.location_table.first(), Some(&Location::default()));
    assert_eq!(tables.function_table.first(), Some(&Function::default()));
    assert_eq!(tables.link_table.first(), Some(&Link::default()));
    assert_eq!(tables.string_table.first().map(String::as_str), Some(""));
    assert_eq!(tables.attribute_table.first(), Some(&Attribute::default()));
    assert_eq!(tables.stack_table.first(), Some(&Stack::default()));
    let strings: std::collections::BTreeSet<&String> = tables.string_table.iter().collect();
    assert_eq!(strings.len(), tables.string_table.len(), "a text is there twice");
    let is_in = |index: i32, length: usize| assert!(usize::try_from(index).is_ok_and(|index| index < length));
    let text = |index| is_in(index, tables.string_table.len());
    let attributes =
        |indices: &[i32]| indices.iter().for_each(|&index| is_in(index, tables.attribute_table.len()));
    for mapping in &tables.mapping_table {
        text(mapping.filename_strindex);
        attributes(&mapping.attribute_indices);
    }
    for location in &tables.location_table {
        is_in(location.mapping_index, tables.mapping_table.len());
        attributes(&location.attribute_indices);
        location.lines.iter().for_each(|line| is_in(line.function_index, tables.function_table.len()));
    }
    for function in &tables.function_table {
        [function.name_strindex, function.system_name_strindex, function.filename_strindex]
            .into_iter()
            .for_each(text);
    }
    tables.attribute_table.iter().for_each(|attribute| text(attribute.key_strindex));
    for stack in &tables.stack_table {
        stack.location_indices.iter().for_each(|&index| is_in(index, tables.location_table.len()));
    }
    for profile in profiles(request) {
        for sample in &profile.samples {
            is_in(sample.stack_index, tables.stack_table.len());
            attributes(&sample.attribute_indices);
            assert!(sample.link_index == 0 && sample.values.len() == 1);
        }
    }
}

fn profiles(request: &Request) -> impl Iterator<Item = &Profile> {
    let scopes = request.resource_profiles.iter().flat_map(|resource| &resource.scope_profiles);
    scopes.flat_map(|scope| &scope.profiles)
}

/// A sample in words.
#[derive(Debug)]
pub struct Sampled {
    pub thread: String,
    pub state: String,
    /// Leaf first.
    pub functions: Vec<String>,
    pub ns: i64,
}

/// All samples in words.
pub fn stacks(request: &Request) -> Vec<Sampled> {
    let tables = request.dictionary.as_ref().expect("tables");
    let text = |index: i32| tables.string_table[index as usize].clone();
    let sampled = |sample: &Sample| {
        let attribute = |key: &str| {
            let attributes =
                sample.attribute_indices.iter().map(|&index| &tables.attribute_table[index as usize]);
            let found =
                attributes.filter(|attribute| text(attribute.key_strindex) == key).collect::<Vec<_>>();
            assert_eq!(found.len(), 1, "{key}");
            found[0].value.as_ref().and_then(|value| value.string_value.clone()).expect(key)
        };
        let locations = tables.stack_table[sample.stack_index as usize].location_indices.iter();
        let lines = locations.flat_map(|&index| &tables.location_table[index as usize].lines);
        Sampled {
            thread: attribute("thread.name"),
            state: attribute("thread.state"),
            functions: lines
                .map(|line| text(tables.function_table[line.function_index as usize].name_strindex))
                .collect(),
            ns: sample.values[0],
        }
    };
    profiles(request).flat_map(|profile| &profile.samples).map(sampled).collect()
}
