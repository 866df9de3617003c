//! The JSON formats, read back by serde_json.

use serde_json::Value;
use swipr_formats::Options;
use swipr_formats::model::{Mode, State};

use crate::cases;
use swipr_properties::recording::{Recording, function, module, native, stack, thread};

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

const NASTY: &str = "a\"\\\n\r\t\u{0}\u{7f}\u{2028}}],{\"b\":1名\u{1f600}";

fn nasty() -> Recording {
    let mut recording = Recording::new(Mode::Wall);
    recording.header.process_name = NASTY.to_owned();
    recording.header.executable = NASTY.to_owned();
    let frame = native(u64::MAX, &module(NASTY, 0), vec![function(NASTY, u64::MAX)]);
    let state = State::Blocked(Some(3));
    recording.add(&thread(1, NASTY), state, 5, &stack(vec![frame]));
    recording
}

#[test]
fn raw_lines_keep_names_and_addresses_exactly() {
    let records = lines(&nasty().text("raw", &Options::default()));
    let kinds: Vec<&str> = records.iter().filter_map(|r| r["type"].as_str()).collect();
    assert_eq!(kinds, ["header", "thread", "module", "stack", "sample", "end"]);
    assert_eq!(records[0]["swipr"], 1);
    assert_eq!(records[0]["process_name"], NASTY);
    assert_eq!(records[1]["name"], NASTY);
    assert_eq!(records[2]["path"], NASTY);
    assert_eq!(records[2]["build_id"], "ab01ff");
    let frame = &records[3]["frames"][0];
    assert_eq!(frame["address"], "0xffffffffffffffff");
    assert_eq!(frame["functions"][0]["name"], NASTY);
    assert_eq!(records[4]["state"], "blocked");
    assert_eq!(records[4]["syscall"], 3);
    assert_eq!(records[4]["weight_ns"], 5);
}

#[test]
fn raw_writes_each_thread_module_and_stack_once_and_before_its_use() {
    let records = lines(&cases::everything().text("raw", &Options::default()));
    let mut next = std::collections::HashMap::new();
    for record in &records {
        let kind = record["type"].as_str().unwrap();
        if let Some(id) = record["id"].as_u64() {
            let expected = next.entry(kind).or_insert(0);
            assert_eq!(id, *expected, "{record}");
            *expected += 1;
        }
        let known = |kind: &str, id: &Value| {
            let id = id.as_u64().unwrap();
            assert!(next.get(kind).is_some_and(|next| id < *next), "{record}");
        };
        match kind {
            "sample" => {
                known("thread", &record["thread"]);
                known("stack", &record["stack"]);
            }
            "stack" => {
                for frame in record["frames"].as_array().unwrap() {
                    if !frame["module"].is_null() {
                        known("module", &frame["module"]);
                    }
                }
            }
            _ => {}
        }
    }
    assert_eq!((next["thread"], next["module"], next["stack"]), (2, 2, 4));
}

#[test]
fn the_json_dump_is_one_valid_object_whatever_is_in_it() {
    let dump: Value = serde_json::from_str(&nasty().text("json", &Options::default())).unwrap();
    assert_eq!(dump["process_name"], NASTY);
    let sample = &dump["samples"][0];
    assert_eq!(sample["name"], NASTY);
    assert_eq!(sample["frames"][0]["module"], NASTY);
    assert_eq!(sample["frames"][0]["functions"][0]["name"], NASTY);
    let many: Value = serde_json::from_str(&cases::everything().text("json", &Options::default())).unwrap();
    assert_eq!(many["samples"].as_array().map(Vec::len), Some(6));
    assert_eq!(many["summary"]["truncated"], 1);
    let none: Value = serde_json::from_str(&cases::empty().text("json", &Options::default())).unwrap();
    assert_eq!(none["samples"].as_array().map(Vec::len), Some(0));
    assert_eq!(none["summary"]["late"], 300);
}
