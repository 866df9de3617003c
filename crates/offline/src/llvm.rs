//! Names by `llvm-symbolizer`, of LLVM 13 or later: it gets requests line by line and answers in
//! JSON.

use crate::resolver::Resolver;
use crate::search::SearchPath;
use serde_json::Value;
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use swipr_symbols::demangle::demangle;
use swipr_symbols::symbolizer::{Lookup, ObjectKey, Symbol};

/// The program, running. It ends when this is dropped.
#[derive(Debug)]
pub struct LlvmSymbolizer {
    child: Child,
    questions: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl LlvmSymbolizer {
    /// Starts it; an error is that it cannot be started, or is not what it should be.
    pub fn start(program: &Path, search: &SearchPath) -> io::Result<LlvmSymbolizer> {
        let mut command = Command::new(program);
        command.args(["--output-style=JSON", "--inlines", "--no-demangle"]);
        for directory in search.directories() {
            command.arg(format!("--debug-file-directory={}", directory.display()));
        }
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let (questions, answers) = (child.stdin.take(), child.stdout.take());
        let answers = BufReader::new(answers.ok_or(io::ErrorKind::BrokenPipe)?);
        let mut started = LlvmSymbolizer { child, questions, answers };
        // Older ones know no JSON, and end.
        match started.ask("/nothing", 0) {
            Some(_) => Ok(started),
            None => Err(io::Error::other("it does not answer in JSON, as that of LLVM 13 and later does")),
        }
    }

    fn ask(&mut self, path: &str, address: u64) -> Option<Value> {
        if path.contains(['"', '\n']) {
            return None;
        }
        let questions = self.questions.as_mut()?;
        questions
            .write_all(format!("\"{path}\" {address:#x}\n").as_bytes())
            .and_then(|()| questions.flush())
            .ok()?;
        let mut line = String::new();
        self.answers.read_line(&mut line).ok()?;
        serde_json::from_str(&line).ok()
    }
}

impl Resolver for LlvmSymbolizer {
    fn resolve(&mut self, file: &ObjectKey, address: u64, lookup: Lookup) -> Arc<[Symbol]> {
        let asked = match lookup {
            Lookup::Pc => address,
            Lookup::ReturnAddress => address.saturating_sub(1),
        };
        let Some(answer) = self.ask(&file.path, asked) else { return Arc::from([]) };
        let frames = answer.get("Symbol").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let last = frames.len().saturating_sub(1);
        let symbol = |(index, frame): (usize, &Value)| symbol(frame, address, index < last);
        frames.iter().enumerate().filter_map(symbol).collect()
    }
}

/// One function; `None` where its name is not known.
fn symbol(frame: &Value, address: u64, inlined: bool) -> Option<Symbol> {
    let text = |field: &str| frame.get(field).and_then(Value::as_str).filter(|text| !text.is_empty());
    let start =
        text("StartAddress").and_then(|start| u64::from_str_radix(start.trim_start_matches("0x"), 16).ok());
    let line = frame.get("Line").and_then(Value::as_u64).and_then(|line| u32::try_from(line).ok());
    let linkers = text("FunctionName")?;
    let readable = demangle(linkers);
    Some(Symbol {
        name: readable.as_deref().unwrap_or(linkers).into(),
        mangled: readable.is_some().then(|| linkers.into()),
        // Inlined functions have none of their own.
        offset: start.filter(|_| !inlined).map_or(0, |start| address.saturating_sub(start)),
        file: text("FileName").map(Arc::from),
        line: line.filter(|line| *line > 0),
        inlined,
    })
}

impl Drop for LlvmSymbolizer {
    fn drop(&mut self) {
        // It ends with its input.
        self.questions = None;
        let _ = self.child.wait();
    }
}
