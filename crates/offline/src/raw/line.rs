//! The lines' fields, and what they are in the formats' model.

use serde::Deserialize;
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use swipr_formats::model::{
    Cost, Frame, FrameKind, Function, Header, Language, Measure, Mode, Module, Summary,
};

#[derive(Deserialize)]
pub(super) struct Kind {
    #[serde(rename = "type")]
    pub(super) kind: String,
}

#[derive(Deserialize)]
pub(super) struct SampleLine<'a> {
    pub(super) time_ns: u64,
    pub(super) thread: usize,
    pub(super) state: &'a str,
    pub(super) syscall: Option<u32>,
    pub(super) weight_ns: u64,
    pub(super) stack: usize,
}

#[derive(Deserialize)]
pub(super) struct Version {
    pub(super) swipr: u32,
}

#[derive(Deserialize)]
pub(super) struct HeaderLine {
    pid: u32,
    process_name: String,
    executable: String,
    start_ns: u64,
    interval_ns: u64,
    mode: String,
    measure: Option<String>,
    unit: Option<String>,
}

impl HeaderLine {
    pub(super) fn into_header(self) -> Result<Header, String> {
        let mode = match self.mode.as_str() {
            "wall" => Mode::Wall,
            "cpu" => Mode::Cpu,
            other => return Err(format!("\"{other}\" is no mode")),
        };
        Ok(Header {
            pid: self.pid,
            process_name: self.process_name,
            executable: self.executable,
            start_ns: self.start_ns,
            interval_ns: self.interval_ns,
            mode,
            measure: self.measure.map(|kind| Measure { kind, unit: self.unit.unwrap_or_default() }),
        })
    }
}

#[derive(Deserialize)]
pub(super) struct ThreadLine {
    pub(super) id: usize,
    pub(super) tid: u32,
    pub(super) name: String,
}

#[derive(Deserialize)]
pub(super) struct ModuleLine {
    pub(super) id: usize,
    path: String,
    start: String,
    end: String,
    file_offset: String,
    /// Not in older recordings.
    base: Option<String>,
    #[serde(default)]
    build_id: String,
}

impl ModuleLine {
    pub(super) fn into_module(self) -> Result<Module, String> {
        let (start, file_offset) = (number(&self.start)?, number(&self.file_offset)?);
        let base = self.base.as_deref().map(number).transpose()?;
        Ok(Module {
            start,
            end: number(&self.end)?,
            file_offset,
            base: base.unwrap_or(start.wrapping_sub(file_offset)),
            build_id: bytes(&self.build_id)?,
            path: self.path,
        })
    }
}

#[derive(Deserialize)]
pub(super) struct StackLine {
    pub(super) id: usize,
    pub(super) frames: Vec<FrameField>,
}

#[derive(Deserialize)]
pub(super) struct FrameField {
    address: String,
    #[serde(default)]
    kind: String,
    module: Option<usize>,
    #[serde(default)]
    functions: Vec<FunctionField>,
}

#[derive(Deserialize)]
struct FunctionField {
    name: String,
    mangled: Option<String>,
    #[serde(default)]
    offset: u64,
    file: Option<String>,
    line: Option<u32>,
}

impl FrameField {
    pub(super) fn into_frame(self, modules: &[Arc<Module>]) -> Result<Frame, String> {
        let module = match self.module {
            None => None,
            Some(id) => Some(
                modules.get(id).ok_or("a frame is of a module that the recording does not have")?.clone(),
            ),
        };
        let kind = match self.kind.as_str() {
            "jit" => FrameKind::Jit,
            "note" => FrameKind::Note,
            word => Language::from_word(word).map_or(FrameKind::Native, FrameKind::Interpreted),
        };
        let functions = self.functions.into_iter().map(FunctionField::into_function).collect();
        Ok(Frame { address: number(&self.address)?, kind, module, functions })
    }
}

impl FunctionField {
    fn into_function(self) -> Function {
        Function {
            name: self.name.into(),
            mangled: self.mangled.map(Into::into),
            offset: self.offset,
            file: self.file.map(Into::into),
            line: self.line,
        }
    }
}

#[derive(Deserialize)]
pub(super) struct EndLine {
    #[serde(default)]
    truncated_by: BTreeMap<String, u64>,
    /// Counts and cost, and what other versions may have.
    #[serde(flatten)]
    rest: BTreeMap<String, Value>,
}

impl EndLine {
    pub(super) fn into_summary(self) -> Summary {
        let mut summary = Summary::default();
        let figure = |name: &str| self.rest.get(name).and_then(Value::as_u64);
        for name in self.rest.keys() {
            if let (Some(count), Some(number)) = (summary.count_mut(name), figure(name)) {
                *count = number;
            }
        }
        summary.truncated_by =
            self.truncated_by.into_iter().map(|(why, count)| (Cow::Owned(why), count)).collect();
        let of_cost = |name| figure(name).unwrap_or(0);
        summary.cost = figure("held_p50_ns").map(|held_p50_ns| Cost {
            held_p50_ns,
            held_p99_ns: of_cost("held_p99_ns"),
            sweep_p50_ns: of_cost("sweep_p50_ns"),
            sweep_p99_ns: of_cost("sweep_p99_ns"),
            agent_cpu_ns: of_cost("agent_cpu_ns"),
        });
        summary
    }
}

/// `0x` and hexadecimal digits.
fn number(text: &str) -> Result<u64, String> {
    let digits = text.strip_prefix("0x");
    let number = digits.and_then(|digits| u64::from_str_radix(digits, 16).ok());
    number.ok_or_else(|| format!("{text:?} is no address"))
}

fn bytes(hex: &str) -> Result<Vec<u8>, String> {
    let pair = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    let bytes: Option<Vec<u8>> = hex.as_bytes().chunks(2).map(pair).collect();
    bytes.filter(|_| hex.len().is_multiple_of(2)).ok_or_else(|| format!("{hex:?} is no build id"))
}
