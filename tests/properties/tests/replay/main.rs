//! Every property on the inputs that are kept, and on changes of them: the same ones in every run.

mod changes;

use changes::{Random, changed};
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::thread;
use swipr_properties::{PROPERTIES, Property};

/// As the agent's threads have, so that nothing goes deeper than they can.
const STACK_BYTES: usize = 1 << 20;
/// Longest changed input.
const MAX_BYTES: usize = 8192;
const SEED: u64 = 0x5eed_0f5e_ed5e;

/// What is kept for a property, by name.
fn kept(property: &Property) -> Vec<(PathBuf, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/seeds").join(property.name);
    let mut inputs: Vec<_> = std::fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.unwrap().path())
        .map(|path| (path.clone(), std::fs::read(path).unwrap()))
        .collect();
    inputs.sort();
    assert!(!inputs.is_empty(), "{} is empty", folder.display());
    inputs
}

/// On a thread as large as the agent's.
fn on_a_small_stack(body: impl FnOnce() + Send + 'static) {
    let thread = thread::Builder::new().stack_size(STACK_BYTES).spawn(body).unwrap();
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
}

fn replay(property: Property) {
    for (path, bytes) in kept(&property) {
        if catch_unwind(|| (property.check)(&bytes)).is_err() {
            panic!("{} does not hold for {}", property.name, path.display());
        }
    }
}

fn try_changes(property: Property) {
    let inputs: Vec<Vec<u8>> = kept(&property).into_iter().map(|(_, bytes)| bytes).collect();
    let mut random = Random(SEED);
    for _ in 0..property.tries {
        let bytes = changed(&inputs, MAX_BYTES, &mut random);
        if catch_unwind(|| (property.check)(&bytes)).is_err() {
            let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(property.name);
            std::fs::write(&path, &bytes).unwrap();
            panic!("{} does not hold for {}", property.name, path.display());
        }
    }
}

macro_rules! properties {
    ($($name:ident: $replayed:ident, $changed:ident;)*) => {
        $(
            #[test]
            fn $replayed() {
                on_a_small_stack(|| replay(named(stringify!($name))));
            }

            #[test]
            fn $changed() {
                on_a_small_stack(|| try_changes(named(stringify!($name))));
            }
        )*

        #[test]
        fn every_property_is_tested() {
            let tested = [$(stringify!($name)),*];
            assert!(PROPERTIES.iter().map(|property| property.name).eq(tested));
        }
    };
}

fn named(name: &str) -> Property {
    *PROPERTIES.iter().find(|property| property.name == name).unwrap()
}

properties! {
    http_head: http_head_holds_for_what_is_kept, http_head_holds_for_changes;
    http_query: http_query_holds_for_what_is_kept, http_query_holds_for_changes;
    http_conversation: http_conversation_holds_for_what_is_kept, http_conversation_holds_for_changes;
    json_request: json_request_holds_for_what_is_kept, json_request_holds_for_changes;
    frame_rows: frame_rows_holds_for_what_is_kept, frame_rows_holds_for_changes;
    frame_sections: frame_sections_holds_for_what_is_kept, frame_sections_holds_for_changes;
    object_file: object_file_holds_for_what_is_kept, object_file_holds_for_changes;
    perf_map: perf_map_holds_for_what_is_kept, perf_map_holds_for_changes;
    jitdump: jitdump_holds_for_what_is_kept, jitdump_holds_for_changes;
    jit_object: jit_object_holds_for_what_is_kept, jit_object_holds_for_changes;
    demangle: demangle_holds_for_what_is_kept, demangle_holds_for_changes;
    table_look_up: table_look_up_holds_for_what_is_kept, table_look_up_holds_for_changes;
    expression: expression_holds_for_what_is_kept, expression_holds_for_changes;
    walk: walk_holds_for_what_is_kept, walk_holds_for_changes;
    walk_own_stack: walk_own_stack_holds_for_what_is_kept, walk_own_stack_holds_for_changes;
    recording: recording_holds_for_what_is_kept, recording_holds_for_changes;
}
