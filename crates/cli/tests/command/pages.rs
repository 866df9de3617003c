//! Every command and every piece of code in README and docs is run, or is named in
//! `pages/exceptions.rs` with the reason.

mod costs;
mod exceptions;
mod place;
mod rust;
mod snippets;

use crate::support::*;
use exceptions::{EXCEPTIONS, Why};
pub use place::Place;
use saphyr::{LoadableYamlNode, Yaml};
use snippets::Snippet;
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use swipr_c_tests::agent::checkout;
use swipr_c_tests::directory::Directory;
use swipr_c_tests::{agent, program};

/// Commands that run at the same time.
const AT_ONCE: usize = 3;

/// What is to be run, in these languages.
fn to_run(languages: &[&str]) -> Vec<Snippet> {
    let all = snippets::all().into_iter().filter(|snippet| languages.contains(&&*snippet.language));
    all.filter(|snippet| exceptions::of(&snippet.page, &snippet.text).is_none()).collect()
}

/// All that fail, reported together.
fn all_are_right(snippets: Vec<Snippet>, check: impl Fn(&Snippet) -> Result<(), String> + Sync) {
    assert!(!snippets.is_empty());
    let (queue, wrong) = (Mutex::new(snippets.iter()), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let Some(snippet) = queue.lock().expect("the queue").next() else { break };
                    if let Err(why) = check(snippet) {
                        let found = format!("{}:{}: {why}", snippet.page, snippet.line);
                        wrong.lock().expect("the list").push(found);
                    }
                }
            });
        }
    });
    let wrong = wrong.into_inner().expect("the list");
    assert!(wrong.is_empty(), "{} of {}\n{}", wrong.len(), snippets.len(), wrong.join("\n\n"));
}

#[test]
fn every_command_in_the_documents_works() {
    let place = Place::shared();
    all_are_right(to_run(&["sh", "span"]), |snippet| {
        let command = match snippet.text.strip_prefix("GET ") {
            Some(path) => format!("curl --unix-socket \"$SOCKET\" 'http://swipr{path}' > answer"),
            None => mentioned(&snippet.text).unwrap_or_else(|| snippet.text.clone()),
        };
        place.run(&command).check()
    });
}

/// `swipr VERB` in a sentence is a name; there must be such a verb.
fn mentioned(text: &str) -> Option<String> {
    let verb = text.strip_prefix("swipr ").filter(|rest| !rest.contains(' '))?;
    (verb != "ls").then(|| format!("swipr {verb} --help"))
}

#[test]
fn every_piece_of_c_in_the_documents_is_compiled_and_runs() {
    all_are_right(to_run(&["c"]), |snippet| {
        let directory = Directory::new();
        let (includes, body): (Vec<&str>, Vec<&str>) =
            snippet.text.lines().partition(|line| line.starts_with("#include"));
        let text = format!(
            "#include <dlfcn.h>\n{}\nstatic volatile long sum;\n\
             static inline void work(void) {{ for (long i = 0; i < 300000000; i++) sum += i; }}\n\
             int main(void) {{ work();\n{}\nreturn 0; }}\n",
            includes.join("\n"),
            body.join("\n")
        );
        let source = directory.path().join("piece.c");
        std::fs::write(&source, text).expect("a C file");
        let executable = directory.path().join("piece");
        let libraries = if includes.is_empty() { vec![] } else { vec!["-lswipr".to_owned()] };
        let mut flags = program::agent_flags();
        flags.push("-include".to_owned());
        flags.push(checkout().join("include/swipr.h").display().to_string());
        program::compile(&source, &executable, &flags, &libraries);
        let mut command = Command::new(&executable);
        command.current_dir(directory.path()).env("SWIPR_SOCKET", directory.path().join("{PID}.sock"));
        command.env("LD_LIBRARY_PATH", agent::library().parent().expect("a folder"));
        let said = said(&mut command);
        if said.status != Some(0) {
            return Err(format!("{said:?}"));
        }
        written(&snippet.text, directory.path())
    });
}

/// Recordings that a piece of code names must be there.
fn written(code: &str, folder: &Path) -> Result<(), String> {
    let names = code
        .split('"')
        .filter(|name| [".folded", ".pb.gz", ".svg", ".html"].iter().any(|end| name.ends_with(end)));
    for name in names {
        if !std::fs::metadata(folder.join(name)).is_ok_and(|file| file.len() > 0) {
            return Err(format!("wrote no {name}"));
        }
    }
    Ok(())
}

#[test]
fn every_request_in_the_documents_is_answered() {
    let place = Place::shared();
    all_are_right(to_run(&["json"]), |snippet| {
        let output = Command::new("curl")
            .args(["--silent", "--show-error", "--fail", "--data", snippet.text.trim(), "--unix-socket"])
            .arg(place.socket())
            .arg("http://swipr/")
            .output();
        let output = Said::of(output.expect("curl"));
        if output.status == Some(0) && !output.out.is_empty() { Ok(()) } else { Err(format!("{output:?}")) }
    });
}

#[test]
fn what_the_documents_quote_is_in_the_files() {
    all_are_right(to_run(&["dockerfile"]), |snippet| {
        let file = read(&checkout().join("loader-scripts/containers/Dockerfile.service"));
        let missing = snippet.text.lines().find(|line| !file.contains(line));
        missing.map_or(Ok(()), |line| Err(format!("Dockerfile.service has no {line:?}")))
    });
    all_are_right(to_run(&["swift"]), |snippet| {
        let files = ["packages/swift/Package.swift", "packages/swift/Sources/Swipr/Swipr.swift"]
            .map(|file| read(&checkout().join(file)));
        let is_word = |c: char| c.is_ascii_alphanumeric();
        let mut names = snippet.text.split("Swipr.").skip(1);
        let missing = names.find_map(|rest| {
            let name = rest.split(|c| !is_word(c)).next()?;
            let is_there =
                ["func", "var"].iter().any(|kind| files[1].contains(&format!("static {kind} {name}")));
            (!is_there).then_some(name)
        });
        match missing {
            Some(name) => Err(format!("Swipr.swift has no {name}")),
            None if !files[0].contains("name: \"Swipr\"") => {
                Err("Package.swift has no product Swipr".to_owned())
            }
            None => Ok(()),
        }
    });
}

#[test]
fn configurations_of_scrapers_name_routes_that_there_are() {
    let routes = read(&checkout().join("docs/http.md"));
    all_are_right(to_run(&["alloy", "yaml"]), |snippet| {
        if snippet.language == "yaml" {
            Yaml::load_from_str(&snippet.text).map_err(|error| error.to_string())?;
        }
        let words = snippet.text.split(|c: char| c.is_whitespace() || "\",{}".contains(c));
        let mut paths = words.filter(|word| word.starts_with("/debug/"));
        let missing = paths.find(|path| !routes.contains(&format!("| GET | `{path}` |")));
        missing.map_or(Ok(()), |path| Err(format!("there is no route {path}")))
    });
}

#[test]
fn every_exception_is_still_in_its_document_and_what_is_run_elsewhere_is() {
    let all = snippets::all();
    let mut wrong = Vec::new();
    for (page, begins, why) in EXCEPTIONS {
        if !all.iter().any(|snippet| snippet.page == *page && snippet.text.starts_with(begins)) {
            wrong.push(format!("{page} does not show {begins:?} any more"));
        }
        match why {
            Why::Elsewhere { file, text } if !read(&checkout().join(file)).contains(text) => {
                wrong.push(format!("{page}: {begins:?} is not run by {file}: there is no {text:?}"));
            }
            Why::Never("") => wrong.push(format!("{page}: {begins:?} without a reason")),
            _ => {}
        }
    }
    // Without a language, or as `text`, it is what a command prints.
    let known = [
        "",
        "text",
        "sh",
        "span",
        "c",
        "rust",
        "toml",
        "json",
        "dockerfile",
        "cmake",
        "swift",
        "alloy",
        "yaml",
    ];
    let unknown = all.iter().filter(|snippet| !known.contains(&&*snippet.language));
    wrong.extend(
        unknown.map(|snippet| format!("{}:{}: nobody runs {}", snippet.page, snippet.line, snippet.language)),
    );
    let cmake = all.iter().filter(|snippet| snippet.language == "cmake");
    let script = read(&checkout().join("packages/check"));
    let lines = cmake.flat_map(|snippet| snippet.text.lines());
    wrong.extend(
        lines
            .filter(|line| !line.starts_with("find_package") && !script.contains(line))
            .map(|line| format!("packages/check has no {line:?}")),
    );
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
