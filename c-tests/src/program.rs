//! A C program of `programs/`: its directives, and how it is compiled.
//!
//! Directives are comment lines at the start of a line:
//!
//! ```text
//! // cflags: -O2            further flags for the compiler
//! // libs: -ldl             libraries; -lswipr finds the agent and its header
//! // preload: no            do not preload the agent: the program starts it itself
//! // descriptors: 16       limit on the number of file descriptors (ulimit -n)
//! // library: late.c        a shared object to build; its path is the first argument
//! // record: hz=100&…       make a recording with this query; what follows expects of it
//! // expect: …              see `expectation`
//! ```

use crate::agent;
use crate::directory::Directory;
use std::path::{Path, PathBuf};
use std::process::Command;

/// One recording and what is expected of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The query of the request.
    pub query: String,
    /// The lines of expectation.
    pub expectations: Vec<String>,
}

/// A program that has been compiled.
#[derive(Clone, Debug)]
pub struct Program {
    /// Its name: the file's, without `.c`.
    pub name: String,
    /// The executable.
    pub executable: PathBuf,
    /// The shared object that goes with it.
    pub library: Option<PathBuf>,
    /// Limit on the number of file descriptors.
    pub descriptors: Option<u64>,
    /// Whether the agent is preloaded.
    pub preload: bool,
    /// The recordings to make.
    pub steps: Vec<Step>,
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Directives {
    flags: Vec<String>,
    libraries: Vec<String>,
    no_preload: bool,
    descriptors: Option<u64>,
    library: Option<String>,
    steps: Vec<Step>,
}

/// The folder of the C sources.
pub fn sources() -> PathBuf {
    agent::checkout().join("c-tests").join("programs")
}

impl Program {
    /// Compiles `programs/<name>.c` into `directory`.
    pub fn compile(name: &str, directory: &Path) -> Self {
        Self::compile_with(name, directory, &[])
    }

    /// The same, with further flags.
    pub fn compile_with(name: &str, directory: &Path, flags: &[String]) -> Self {
        let source = sources().join(format!("{name}.c"));
        let text = std::fs::read_to_string(&source)
            .unwrap_or_else(|error| panic!("cannot read {}: {error}", source.display()));
        let directives = Directives::read(&text).unwrap_or_else(|why| panic!("{}: {why}", source.display()));
        let executable = directory.join(name);
        let mut arguments = directives.flags.clone();
        arguments.push("-pthread".into());
        arguments.extend_from_slice(flags);
        if directives.libraries.iter().any(|flag| flag == "-lswipr") {
            arguments.extend(agent_flags());
        }
        compile(&source, &executable, &arguments, &directives.libraries);
        let library = directives.library.map(|file| {
            let object = directory.join(file.replace(".c", ".so"));
            let shared = ["-shared", "-fPIC", "-O2", "-Wl,-z,lazy"].map(str::to_string);
            compile(&sources().join(file), &object, &shared, &[]);
            object
        });
        Self {
            name: name.to_string(),
            executable,
            library,
            descriptors: directives.descriptors,
            preload: !directives.no_preload,
            steps: directives.steps,
        }
    }
}

/// Compiles a program of `programs`. The directory must live as long as the program is used.
pub fn compiled(name: &str) -> (Directory, Program) {
    let directory = Directory::new();
    let program = Program::compile(name, directory.path());
    (directory, program)
}

/// Compiler flags for a program that is linked with the agent.
pub fn agent_flags() -> Vec<String> {
    let library = agent::library();
    let folder = library.parent().unwrap_or(Path::new("."));
    vec![
        format!("-I{}", agent::checkout().join("include").display()),
        format!("-L{}", folder.display()),
        format!("-Wl,-rpath,{}", folder.display()),
    ]
}

/// Compiles one C file; warnings are errors.
pub fn compile(source: &Path, output: &Path, flags: &[String], libraries: &[String]) {
    let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
    let result = Command::new(compiler)
        .args(["-std=gnu11", "-g", "-Wall", "-Wextra", "-Werror"])
        .args(flags)
        .arg("-o")
        .arg(output)
        .arg(source)
        .args(libraries)
        .output()
        .expect("a C compiler can be started (set CC to name one)");
    assert!(
        result.status.success(),
        "compiling {} failed:\n{}",
        source.display(),
        String::from_utf8_lossy(&result.stderr)
    );
}

impl Directives {
    fn read(text: &str) -> Result<Self, String> {
        let mut directives = Self::default();
        for line in text.lines() {
            let Some((key, value)) = line.strip_prefix("// ").and_then(|rest| rest.split_once(": ")) else {
                continue;
            };
            let words = || value.split_whitespace().map(str::to_string);
            match key {
                "cflags" => directives.flags.extend(words()),
                "libs" => directives.libraries.extend(words()),
                "preload" => directives.no_preload = value == "no",
                "descriptors" => {
                    let count = value.parse();
                    directives.descriptors = Some(count.map_err(|_| format!("{value} is not a number"))?);
                }
                "library" => directives.library = Some(value.to_string()),
                "record" => {
                    directives.steps.push(Step { query: value.to_string(), expectations: Vec::new() })
                }
                "expect" => match directives.steps.last_mut() {
                    Some(step) => step.expectations.push(value.to_string()),
                    None => return Err("expect: before record:".into()),
                },
                other => return Err(format!("unknown directive {other}:")),
            }
        }
        match directives.steps.iter().find(|step| step.expectations.is_empty()) {
            Some(step) => Err(format!("nothing is expected of {}", step.query)),
            None => Ok(directives),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directives_are_read_in_order() {
        let text = "/* x */\n// cflags: -O2 -g\n// preload: no\n// record: a=1\n\
                    // expect: one\n// expect: two\n// record: b\n// expect: three\n";
        let read = Directives::read(text).expect("directives");
        assert_eq!((read.flags.len(), read.no_preload), (2, true));
        assert_eq!(read.steps[0].expectations, ["one", "two"]);
        assert_eq!(read.steps[1].query, "b");
    }

    #[test]
    fn a_misspelt_directive_is_an_error_and_so_is_a_recording_without_expectation() {
        for wrong in ["// expects: samples >= 1\n", "// expect: samples >= 1\n", "// record: hz=1\n"] {
            assert!(Directives::read(wrong).is_err(), "{wrong}");
        }
    }
}
