//! What profiler.firefox.com requests from a process: names, source files, instructions. They are
//! served under a token, and nothing else is.

use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;
use swipr_c_tests::directory::Directory;
use swipr_c_tests::host::Host;
use swipr_c_tests::http;
use swipr_c_tests::program::Program;

fn send(socket: &Path, method: &str, path: &str, body: &str) -> http::Answer {
    http::send(socket, method, path, body).and_then(http::Answer::read_all).expect("an answer")
}

/// The page whose scripts may read an answer.
fn readers(answer: &http::Answer) -> Option<&str> {
    answer.field("access-control-allow-origin")
}

fn ask(socket: &Path, path: &str, question: &Value) -> Value {
    let answer = send(socket, "POST", path, &question.to_string());
    assert_eq!(answer.status, 200, "{path}: {answer:?}");
    assert_eq!(readers(&answer), Some("https://profiler.firefox.com"));
    serde_json::from_slice(&answer.body).expect("JSON")
}

fn number(value: &Value) -> u64 {
    u64::from_str_radix(value.as_str().expect("text").trim_start_matches("0x"), 16).expect("a number")
}

/// Breakpad's id.
fn debug_id(build_id: &str) -> String {
    let bytes: Vec<&str> = (0..16).map(|at| &build_id[2 * at..2 * at + 2]).collect();
    let order = [3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15];
    order.map(|at| bytes[at]).concat().to_uppercase() + "0"
}

/// The path under which the process answers symbol requests.
fn token(socket: &Path) -> String {
    let help = send(socket, "GET", "/", "").body;
    let help = String::from_utf8(help).expect("text");
    let token = help.split("symbol server for profiler.firefox.com: ").nth(1);
    token.and_then(|rest| rest.lines().next()).expect("the help names the token").to_owned()
}

/// Address and size of a function, as the file's table has them.
fn symbol(program: &Path, name: &str) -> (u64, u64) {
    let output = Command::new("nm").args(["-S", "--defined-only"]).arg(program).output().expect("nm");
    let text = String::from_utf8(output.stdout).expect("text");
    let line = text.lines().find(|line| line.ends_with(&format!(" {name}"))).expect("its symbol");
    let mut numbers = line.split(' ').map(|field| u64::from_str_radix(field, 16));
    let mut number = || numbers.next().expect("a field").expect("a number");
    (number(), number())
}

/// Regression: the addresses in profiles were offsets in files. Symbol servers other than the
/// agent's would have named other functions.
#[test]
fn addresses_of_profiles_are_what_symbol_servers_look_up() {
    let directory = Directory::new();
    let program = Program::compile("numbered_otherwise", directory.path());
    let host = Host::start(&program);
    let socket = host.socket();
    let profile =
        http::get(&socket, "/profile?samples=500&hz=500&format=firefox").and_then(http::Answer::read_all);
    let profile: Value = serde_json::from_slice(&profile.expect("a profile").body).expect("JSON");
    let threads = profile["threads"].as_array().expect("threads");
    let thread = threads.iter().find(|thread| thread["name"] == "burner").expect("burner");
    let column = |table: &str, name: &str, row: &Value| {
        thread[table][name][row.as_u64().expect("a row") as usize].clone()
    };
    let frames = thread["frameTable"]["length"].as_u64().expect("frames");
    let name = |frame: &Value| {
        let text = column("funcTable", "name", &column("frameTable", "func", frame));
        thread["stringArray"][text.as_u64().expect("a text") as usize].clone()
    };
    let burn = (0..frames).map(Value::from).find(|frame| name(frame) == "burn").expect("burn");
    let address = column("frameTable", "address", &burn).as_u64().expect("an address");
    let (start, size) = symbol(&program.executable, "burn");
    assert!((start..start + size).contains(&address), "{address:#x} is not in burn, at {start:#x}");

    let resource = column("funcTable", "resource", &column("frameTable", "func", &burn));
    let library = column("resourceTable", "lib", &resource).as_u64().expect("a library");
    let library = &profile["libs"][library as usize];
    let memory_map = json!([[library["debugName"], library["breakpadId"]]]);
    let question = json!({ "jobs": [{ "memoryMap": memory_map, "stacks": [[[0, address]]] }] });
    let answer = ask(&socket, &format!("{}/symbolicate/v5", token(&socket)), &question);
    assert_eq!(answer["results"][0]["stacks"][0][0]["function"], "burn", "{answer}");
    host.end();
}

#[test]
fn names_and_sources_of_a_process_are_answered_under_its_token_and_no_other_file() {
    let directory = Directory::new();
    let host = Host::start(&Program::compile("no_frame_pointer", directory.path()));
    let socket = host.socket();
    let token = token(&socket);
    let before = ask(&socket, &format!("{token}/symbolicate/v5"), &json!({}));
    assert_eq!(before["error"], "nothing was recorded yet");

    let raw = http::get(&socket, "/profile?samples=500&hz=500&format=raw").and_then(http::Answer::read_all);
    let raw = String::from_utf8(raw.expect("a recording").body).expect("text");
    let lines: Vec<Value> = raw.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let frames =
        lines.iter().filter(|line| line["type"] == "stack").filter_map(|line| line["frames"].as_array());
    let burn = frames.flatten().find(|frame| frame["functions"][0]["name"] == "burn").expect("burn");
    let of_burn = |line: &&Value| line["type"] == "module" && line["id"] == burn["module"];
    let module = lines.iter().find(of_burn).expect("its module");
    let offset = number(&burn["address"]) - number(&module["base"]);
    let name = module["path"].as_str().expect("a path").rsplit('/').next().expect("a name");
    let id = debug_id(module["build_id"].as_str().expect("a build id"));

    let memory_map = json!([[name, id], ["nothing.so", "00"]]);
    let job = json!({ "memoryMap": memory_map, "stacks": [[[0, offset], [1, 5], [-1, 7]]] });
    let answer = ask(&socket, &format!("{token}/symbolicate/v5"), &json!({ "jobs": [job] }));
    let result = &answer["results"][0];
    let found = &result["found_modules"];
    assert_eq!((&found[format!("{name}/{id}")], &found["nothing.so/00"]), (&json!(true), &json!(false)));
    let stack = &result["stacks"][0];
    assert_eq!((&stack[0]["function"], &stack[0]["module"]), (&json!("burn"), &json!(name)));
    assert!(stack[1]["function"].is_null() && stack[2]["function"].is_null(), "{stack}");

    let at = format!("{offset:#x}");
    let source = |file: &Value| {
        let question = json!({ "debugName": name, "debugId": id, "moduleOffset": at, "file": file });
        ask(&socket, &format!("{token}/source/v1"), &question)
    };
    let file = &stack[0]["file"];
    assert!(source(file)["source"].as_str().is_some_and(|text| text.contains("int main(void)")), "{file}");
    for other in ["/etc/passwd", "", "../../etc/passwd"] {
        assert!(source(&json!(other))["error"].is_string(), "{other}");
    }
    let assembly = json!({ "debugName": name, "debugId": id, "startAddress": at, "size": "0x10" });
    let assembly = ask(&socket, &format!("{token}/asm/v1"), &assembly);
    assert!(assembly["error"].as_str().is_some_and(|what| what.contains("feature asm")), "{assembly}");

    let answer = send(&socket, "GET", &format!("{token}/profile.json?seconds=0.2&hz=500"), "");
    let profile = String::from_utf8_lossy(&answer.body);
    assert_eq!((answer.status, readers(&answer)), (200, Some("https://profiler.firefox.com")), "{profile}");
    assert!(profile.contains("\"preprocessedProfileVersion\"") && profile.contains("\"burn\""), "{profile}");
    let answer = send(&socket, "GET", "/profile.json?samples=5", "");
    assert_eq!(readers(&answer), None, "without the token no other page may read it");

    let answer = send(&socket, "OPTIONS", &format!("{token}/source/v1"), "");
    let methods = answer.field("access-control-allow-methods");
    assert_eq!((answer.status, methods), (200, Some("POST, OPTIONS")));
    for (method, path, expected) in [
        ("POST", "/00000000-0000-4000-8000-000000000000/symbolicate/v5".to_owned(), 404),
        ("POST", "/symbolicate/v5".to_owned(), 404),
        ("GET", format!("{token}/symbolicate/v5"), 405),
        ("POST", format!("{token}/profile.json"), 405),
        ("GET", format!("{token}/profile.json?seconds=soon"), 400),
        ("GET", format!("{token}/dump"), 404),
        ("POST", format!("{token}/anything"), 404),
    ] {
        assert_eq!(send(&socket, method, &path, "{}").status, expected, "{method} {path}");
    }
    host.end();
}
