//! The help: commands ready to paste for the socket that the request came to, and every route,
//! parameter and format, from their lists.

use super::parameters::PARAMETERS;
use super::sample_request;
use crate::listen::Address;
use crate::recording::Recorder;
use crate::routes::ROUTES;
use std::fmt::Write;
use swipr_formats::FORMATS;

/// A curl command for a path on this socket.
pub(crate) fn curl(address: &Address, path: &str) -> String {
    let (option, host) = match address {
        Address::Path(path) => {
            (format!("--unix-socket {} ", quoted(&path.to_string_lossy())), "swipr".to_owned())
        }
        Address::Abstract(name) => (
            format!("--abstract-unix-socket {} ", quoted(&String::from_utf8_lossy(name))),
            "swipr".to_owned(),
        ),
        Address::Tcp(tcp) => (String::new(), tcp.to_string()),
    };
    format!("curl -sS {option}'http://{host}{path}'")
}

/// A word for a shell.
fn quoted(text: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"/._-:".contains(&b);
    match text.bytes().all(plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

/// What to do with a socket, as commands.
fn commands(address: &Address) -> [(&'static str, String); 6] {
    [
        ("every thread's stack now", curl(address, "/dump")),
        (
            "10 seconds, for profiler.firefox.com",
            format!("{} > profile.json", curl(address, "/profile.json?seconds=10")),
        ),
        (
            "10 seconds of CPU time, for flame graphs",
            format!("{} > profile.folded", curl(address, "/profile?seconds=10&mode=cpu&format=folded")),
        ),
        (
            "10 seconds as a flame graph: one page, to be opened or shown to others",
            format!("{} > flamegraph.html", curl(address, "/flamegraph.html?seconds=10")),
        ),
        (
            "10 seconds, for go tool pprof",
            format!("{} > profile.pb.gz", curl(address, "/profile.pb.gz?seconds=10")),
        ),
        (
            "as swift-profile-recorder is asked",
            format!("{} -d '{}'", curl(address, "/sample"), sample_request::EXAMPLE),
        ),
    ]
}

/// The whole help.
pub(crate) fn text(address: &Address, recorder: &dyn Recorder) -> String {
    let mut out = String::from("swipr: what this process is doing, as stacks of its threads\n\n");
    if let Some(page) = recorder.live_page() {
        let _ = writeln!(out, "# in a browser: a live flame graph (with SWIPR_TOKEN: /?token=…)\n{page}");
    }
    for (meaning, command) in commands(address) {
        let _ = writeln!(out, "# {meaning}\n{command}");
    }
    for child in super::children::that_listen() {
        let command = curl(&Address::Path(child.socket), "/dump");
        let _ = writeln!(out, "# stacks of the child process {} ({})\n{command}", child.name, child.pid);
    }
    if matches!(address, Address::Tcp(_)) {
        out += "(with SWIPR_TOKEN set, add: -H \"Authorization: Bearer $SWIPR_TOKEN\")\n";
    }
    for reason in recorder.not_listening() {
        let _ = writeln!(out, "\nnot listening where SWIPR_LISTEN says: {reason}");
    }
    let here = if let Address::Tcp(tcp) = address { format!("http://{tcp}") } else { String::new() };
    let _ = writeln!(out, "\nsymbol server for profiler.firefox.com: {here}/{}", super::page::token());
    if !here.is_empty() {
        let _ = writeln!(out, "record 10 seconds and open them there: {}", super::page::link(&here));
    }
    out += "\nroutes\n";
    for route in ROUTES {
        let paths = route.paths.join(", ");
        let _ = writeln!(out, "  {:4} {paths:24} {}", route.method_name(), route.does);
    }
    out += "\nparameters of /profile\n";
    let profile = ROUTES.iter().find(|route| route.paths.contains(&"/profile"));
    let knows = |name: &str| profile.is_some_and(|route| route.takes_parameter(name));
    for parameter in PARAMETERS.iter().filter(|parameter| knows(parameter.name)) {
        let _ = writeln!(out, "  {:14} {} [{}]", parameter.name, parameter.meaning, parameter.values);
    }
    out += "\nformats\n";
    for format in FORMATS {
        let _ = writeln!(out, "  {:14} {}", format.name, format.description);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generated::assert_generated;

    const PAGE: &str = "docs/http.md";

    #[test]
    fn the_routes_in_the_documentation_are_the_list() {
        let mut table = String::from("| method | path | answer | parameters |\n|---|---|---|---|\n");
        for route in ROUTES {
            let code = |names: &[&str]| {
                let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
                names.join(" ")
            };
            let (paths, parameters) = (code(route.paths), route.parameter_words());
            let (method, does) = (route.method_name(), route.does);
            let _ = writeln!(table, "| {method} | {paths} | {does} | {parameters} |");
        }
        assert_generated(PAGE, "routes: generated", &table);
    }

    #[test]
    fn the_parameters_in_the_documentation_are_the_list() {
        let mut table = String::from("| parameter | JSON field | values | meaning |\n|---|---|---|---|\n");
        for parameter in PARAMETERS {
            let field = parameter.json.map_or(String::new(), |field| format!("`{field}`"));
            let asked = ROUTES.iter().any(|route| route.takes_parameter(parameter.name));
            let name = if asked { format!("`{}`", parameter.name) } else { String::new() };
            let (values, meaning) = (parameter.values, parameter.meaning);
            let _ = writeln!(table, "| {name} | {field} | {values} | {meaning} |");
        }
        assert_generated(PAGE, "parameters: generated", &table);
    }

    #[test]
    fn the_formats_in_the_documentation_are_the_list() {
        let mut table =
            String::from("| format | other names | file | written | what it is |\n|---|---|---|---|---|\n");
        for format in FORMATS {
            let aliases: Vec<String> = format.aliases.iter().map(|alias| format!("`{alias}`")).collect();
            let (name, suffix, aliases) = (format.name, format.suffix, aliases.join(" "));
            let when = if format.streams { "as samples come" } else { "at the end" };
            let _ = writeln!(
                table,
                "| `{name}` | {aliases} | `profile.{suffix}` | {when} | {} |",
                format.description
            );
        }
        assert_generated("docs/formats.md", "formats: generated", &table);
    }

    #[test]
    fn every_name_in_the_lists_is_a_parameter() {
        let known = |name: &str| PARAMETERS.iter().any(|parameter| parameter.name == name);
        for route in ROUTES {
            for name in route.parameters() {
                assert!(known(name), "{name} of {:?}", route.paths);
            }
        }
    }

    #[test]
    fn a_path_with_blanks_and_quotes_is_quoted_for_the_shell() {
        let address = Address::Path("/tmp/it's here".into());
        let command = curl(&address, "/dump");
        assert!(command.contains(r"--unix-socket '/tmp/it'\''s here' "), "{command}");
    }
}
