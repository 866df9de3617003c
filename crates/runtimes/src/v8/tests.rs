mod compiled;

use super::*;
use crate::blocks::Blocks;
use crate::code::Code;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use swipr_unwind::frame_runs::FrameRuns;
use swipr_unwind::frames::{Frames, Storage};

/// As in Node.js 20, of which `scope_rest` is that of all versions before 24.
const LAYOUT: V8Layout = V8Layout {
    frame_context: -8,
    frame_function: -16,
    own_frames: 1 << 17,
    map: 0,
    map_type: 12,
    function_shared: 24,
    shared_name: 16,
    shared_script: 32,
    script_name: 16,
    script_source: 8,
    string_length: 12,
    string_text: 16,
    wide_string_text: 16,
    cons_first: 16,
    cons_second: 24,
    slice_parent: 16,
    slice_offset: 24,
    thin_actual: 16,
    scope_locals: 2,
    scope_rest: 3,
    type_map: 255,
    types_function: (2066, 2082),
    type_shared: 262,
    type_script: 167,
    type_scope: 261,
    first_other_type: 128,
    one_byte: 8,
    representation: 7,
    cons: 1,
    sliced: 3,
    thin: 5,
    sequential: 0,
    compiled: None,
};
const NEW_LAYOUT: V8Layout = V8Layout { scope_rest: 5, ..LAYOUT };
const CONTEXT: u16 = 210;
const STRING: u16 = 8;
const WIDE: u16 = 0;

/// Objects, each of which stays where it is.
#[derive(Default)]
struct World {
    objects: Vec<Vec<u64>>,
    maps: Vec<(u16, u64)>,
}

fn number(number: u32) -> u64 {
    u64::from(number) << 32
}

impl World {
    fn put(&mut self, words: Vec<u64>) -> u64 {
        let mut words = words;
        words.resize(words.len() + 40, 0);
        self.objects.push(words);
        self.objects.last().unwrap().as_ptr() as u64 + 1
    }

    fn map(&mut self, kind: u16) -> u64 {
        if let Some((_, map)) = self.maps.iter().find(|(known, _)| *known == kind) {
            return *map;
        }
        let meta = if kind == LAYOUT.type_map { 0 } else { self.map(LAYOUT.type_map) };
        let map = self.put(vec![meta, u64::from(kind) << 32]);
        if meta == 0 {
            self.objects.last_mut().unwrap()[0] = map;
        }
        self.maps.push((kind, map));
        map
    }

    fn object(&mut self, kind: u16, fields: &[u64]) -> u64 {
        let map = self.map(kind);
        let words = std::iter::once(map).chain(fields.iter().copied()).collect();
        self.put(words)
    }

    fn string(&mut self, text: &str) -> u64 {
        let units: Vec<u16> = text.encode_utf16().collect();
        let is_wide = units.iter().any(|&unit| unit > 255);
        let bytes: Vec<u8> = match is_wide {
            true => units.iter().flat_map(|unit| unit.to_ne_bytes()).collect(),
            false => units.iter().map(|&unit| unit as u8).collect(),
        };
        let word = |bytes: &[u8]| bytes.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte));
        let mut fields = vec![(units.len() as u64) << 32];
        fields.extend(bytes.chunks(8).map(word));
        self.object(if is_wide { WIDE } else { STRING }, &fields)
    }

    /// A function whose scope says so behind its variables.
    fn function(&mut self, source: u64, scope: &[u64]) -> u64 {
        let file = self.string("file:///srv/a.mjs");
        let script = self.object(LAYOUT.type_script, &[source, file]);
        let scope = self.object(LAYOUT.type_scope, scope);
        let shared = self.object(LAYOUT.type_shared, &[0, scope, 0, script]);
        self.object(LAYOUT.types_function.0, &[0, 0, shared])
    }
}

/// A stack of such frames, each the words below its frame pointer: the context and the function.
/// Returns how the walk ended, and what it found: the number of the frame, the name, the file.
fn walked(layout: &V8Layout, below: &[[u64; 2]], sp_above: i64) -> (End, Vec<(i32, String, String)>) {
    let mut stack = vec![0u64; 6 * below.len() + 16];
    let start = stack.as_ptr() as u64;
    let fp = |n: usize| start + 8 * (6 * n as u64 + 3);
    let return_address = |n: usize| 0x10_0000 + 16 * n as u64;
    for (n, [context, function]) in below.iter().enumerate() {
        let at = 6 * n + 3;
        (stack[at - 1], stack[at - 2]) = (*context, *function);
        (stack[at], stack[at + 1]) = (fp(n + 1), return_address(n + 1));
    }
    let storage: Box<Storage> = Box::new([const { AtomicU64::new(0) }; swipr_unwind::frames::CAPACITY]);
    let mut frames = Frames::new(&storage);
    (0..=below.len()).for_each(|n| frames.push(return_address(n) | if n == 0 { EXACT } else { 0 }));
    // SAFETY: zeroed memory is valid.
    let mut runs: Box<FrameRuns> = unsafe { Box::new_zeroed().assume_init() };
    (0..below.len()).for_each(|n| runs.note(n, fp(n)));
    let sp = fp(0).wrapping_add_signed(sp_above);
    let native = NativeFrames { storage: &storage, total: frames.total(), runs: &runs, sp };
    // SAFETY: zeroed memory is valid.
    let (mut blocks, mut chain): (Box<Blocks>, Box<Chain>) =
        unsafe { (Box::new_zeroed().assume_init(), Box::new_zeroed().assume_init()) };
    walk(layout, native, &mut BlockMemory::new(&mut blocks, -1), KnownKeys::new(&[]), &mut chain);
    let text = |frame: &Frame| match chain.content(*frame).and_then(Code::read) {
        Some(code) => (frame.offset, code.name.to_string(), code.file.to_string()),
        None => (frame.offset, String::new(), String::new()),
    };
    (chain.end(), chain.frames().iter().map(text).collect())
}

fn names(layout: &V8Layout, below: &[[u64; 2]]) -> Vec<String> {
    walked(layout, below, -64).1.into_iter().map(|(_, name, _)| name).collect()
}

#[test]
fn names_are_found_in_each_form_of_a_scope() {
    let mut world = World::default();
    let (source, context) = (world.string("function f() {}"), world.object(CONTEXT, &[]));
    let [name, inferred, empty] = ["f", "A.f", ""].map(|text| world.string(text));
    let (none, outer) = (world.object(131, &[]), world.object(LAYOUT.type_scope, &[]));
    let place = u64::from(u32::MAX) << 32;
    let (start, end) = (number(10), number(15));
    let old: [(&[u64], &str); 5] = [
        (&[name, place, none, start, end, outer], "f"),
        (&[empty, place, inferred, start, end, outer], "A.f"),
        (&[0, place, inferred, start, end, outer], "A.f"),
        (&[name, place, start, end, outer], "f"),
        (&[inferred, start, end, outer, outer], "A.f"),
    ];
    let variables = [name, inferred, number(1), number(2)];
    for (rest, expected) in old {
        let head = [0, 0, number(2)];
        let scope: Vec<u64> = head.iter().chain(&variables).chain(rest).copied().collect();
        let function = world.function(source, &scope);
        assert_eq!(names(&LAYOUT, &[[context, function]]), [expected], "{rest:x?}");
    }
    let new: [(&[u64], &str); 3] =
        [(&[name, place, none, outer], "f"), (&[inferred, outer], "A.f"), (&[none, outer], "<anonymous>")];
    for (rest, expected) in new {
        // Many variables have a table.
        let scope = [0, 0, number(3), start, end, none, number(1), number(2), number(3)];
        let scope: Vec<u64> = scope.iter().chain(rest).copied().collect();
        let function = world.function(source, &scope);
        assert_eq!(names(&NEW_LAYOUT, &[[context, function]]), [expected], "{rest:x?}");
    }
}

#[test]
fn names_are_put_together_of_all_forms_of_strings() {
    let mut world = World::default();
    let (source, context) = (world.string("x"), world.object(CONTEXT, &[]));
    let [long, dot, wide] = ["a.method.of", ".", "жук"].map(|text| world.string(text));
    let slice = world.object(STRING | LAYOUT.sliced, &[6 << 32, long, number(2)]);
    let thin = world.object(STRING | LAYOUT.thin, &[1 << 32, dot]);
    let cons = world.object(STRING | LAYOUT.cons, &[7 << 32, slice, thin]);
    let both = world.object(WIDE | LAYOUT.cons, &[10 << 32, cons, wide]);
    for (name, expected) in [(slice, "method"), (cons, "method."), (both, "method.жук"), (wide, "жук")]
    {
        let function = world.function(source, &[0, 0, 0, number(0), number(1), name, number(9)]);
        assert_eq!(names(&NEW_LAYOUT, &[[context, function]]), [expected]);
    }
    // A string that is part of itself.
    let endless = world.object(STRING | LAYOUT.cons, &[9 << 32, long, long]);
    let last = world.objects.len() - 1;
    world.objects[last][2] = endless;
    let function = world.function(source, &[0, 0, 0, number(0), number(1), endless, number(9)]);
    assert!(names(&NEW_LAYOUT, &[[context, function]]).len() <= 1);
}

#[test]
fn frames_of_v8_itself_have_no_function_and_the_innermost_is_shown_once_it_is_made() {
    let mut world = World::default();
    let (source, context) = (world.string("x"), world.object(CONTEXT, &[]));
    let [f, g] = ["f", "g"].map(|name| {
        let name = world.string(name);
        world.function(source, &[0, 0, 0, number(0), number(1), name, number(9)])
    });
    let none = world.object(131, &[]);
    let shared = world.object(LAYOUT.type_shared, &[0, none, 0, none]);
    let of_v8 = world.object(LAYOUT.types_function.0, &[0, 0, shared]);
    let own = 17 << 1;
    let found = |below: &[[u64; 2]], sp| {
        let (end, found) = walked(&NEW_LAYOUT, below, sp);
        assert_eq!(end, End::Root);
        found.into_iter().map(|(number, name, _)| format!("{number}{name}")).collect::<Vec<_>>()
    };
    let stack = [[context, f], [own, 0], [context, of_v8], [context, g]];
    assert_eq!(found(&stack, -16), ["0f", "3g"]);
    // The function is not pushed yet, or the frame is another one's: nothing says what runs.
    assert_eq!(found(&stack, -8), ["0", "3g"]);
    assert_eq!(found(&stack[1..], -64), ["0", "2g"]);
    assert_eq!(found(&stack[2..], -64), ["0", "1g"]);
    // Another kind of frame: its code may be anything.
    assert_eq!(found(&[[12 << 1, f], [context, g]], -64), ["1g"]);
}

#[test]
fn objects_that_the_collector_has_moved_are_found_at_their_new_places() {
    let mut world = World::default();
    let (source, context) = (world.string("x"), world.object(CONTEXT, &[]));
    let name = world.string("f");
    let function = world.function(source, &[0, 0, 0, number(0), number(1), name, number(9)]);
    let moved = world.put(vec![function - 1]);
    let (_, found) = walked(&NEW_LAYOUT, &[[context, moved]], -64);
    assert_eq!(found, [(0, "f".to_owned(), "/srv/a.mjs".to_owned())]);
}

/// Calls `check` so often, each time with another word of the objects damaged.
fn with_damage(world: &mut World, times: usize, mut check: impl FnMut()) {
    let mut state = 7u64;
    let mut random = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 16
    };
    let pointers: Vec<u64> = world.objects.iter().map(|object| object.as_ptr() as u64 + 1).collect();
    for _ in 0..times {
        let (object, word) = (random() as usize % world.objects.len(), random() as usize % 10);
        let before = world.objects[object][word];
        world.objects[object][word] = match random() % 4 {
            0 => random(),
            1 => pointers[random() as usize % pointers.len()],
            2 => before ^ 1 << (random() % 64),
            _ => number(random() as u32),
        };
        check();
        world.objects[object][word] = before;
    }
}

#[test]
fn words_that_lead_anywhere_are_no_functions_and_end_no_walk() {
    let mut world = World::default();
    let (source, context) = (world.string("source"), world.object(CONTEXT, &[]));
    let name = world.string("f");
    let function = world.function(source, &[0, 0, 0, number(0), number(1), name, number(9)]);
    with_damage(&mut world, 3000, || {
        for layout in [&LAYOUT, &NEW_LAYOUT] {
            walked(layout, &[[context, function]], -64);
        }
    });
    assert_eq!(names(&NEW_LAYOUT, &[[context, function]]), ["f"]);
}

#[test]
fn a_chain_that_is_not_that_of_the_native_frames_is_none() {
    let storage: Box<Storage> = Box::new([const { AtomicU64::new(0) }; swipr_unwind::frames::CAPACITY]);
    let mut frames = Frames::new(&storage);
    [1 | EXACT, 0x2000].into_iter().for_each(|word| frames.push(word));
    let stack = [0, 0, 0x5000, 0x3000u64];
    // SAFETY: zeroed memory is valid.
    let (mut runs, mut blocks, mut chain): (Box<FrameRuns>, Box<Blocks>, Box<Chain>) = unsafe {
        (Box::new_zeroed().assume_init(), Box::new_zeroed().assume_init(), Box::new_zeroed().assume_init())
    };
    runs.note(0, &raw const stack[2] as u64);
    let native = NativeFrames { storage: &storage, total: 2, runs: &runs, sp: stack.as_ptr() as u64 };
    let mut memory = BlockMemory::new(&mut blocks, -1);
    walk(&LAYOUT, native, &mut memory, KnownKeys::new(&[]), &mut chain);
    assert_eq!((chain.end(), chain.frames().len()), (End::Inconsistent, 0));
    storage[1].store(0x3000, Relaxed);
    walk(&LAYOUT, native, &mut memory, KnownKeys::new(&[]), &mut chain);
    assert_eq!(chain.end(), End::Root);
}
