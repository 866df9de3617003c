use super::*;
use crate::v8::compiled::{Compiled, CompiledLayout, RunningAt};

const ARRAY: u16 = 174;
const BYTES: u16 = 186;
const DESCRIPTION: u16 = 206;
const STREAM: u16 = 210;
const NONE: u16 = CompiledLayout::NO_TYPE;
const TURBOFAN: u64 = 12;
const SIZE: u64 = 100;

/// As in Node.js 22.
const COMPILED: V8Layout = V8Layout {
    compiled: Some(CompiledLayout {
        header: 32,
        type_header: STREAM,
        start: Some(40),
        deoptimization: 8,
        positions: 16,
        distances: crate::lines::Distances::Signed,
        size: 52,
        flags: 48,
        kind_mask: 15,
        kinds: (11, 12),
        literals: 2,
        id: 5,
        function: 6,
        wrapped: None,
        calls: 7,
        types_array: [ARRAY, NONE, NONE, NONE, NONE],
        types_bytes: [BYTES, NONE],
    }),
    ..NEW_LAYOUT
};

impl World {
    fn bytes(&mut self, bytes: &[u8]) -> u64 {
        let word = |bytes: &[u8]| bytes.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte));
        let fields: Vec<u64> =
            std::iter::once(number(bytes.len() as u32)).chain(bytes.chunks(8).map(word)).collect();
        self.object(BYTES, &fields)
    }

    fn array(&mut self, elements: &[u64]) -> u64 {
        let fields: Vec<u64> =
            std::iter::once(number(elements.len() as u32)).chain(elements.iter().copied()).collect();
        self.object(ARRAY, &fields)
    }

    fn shared(&mut self, name: &str) -> u64 {
        let (source, name) = (self.string("source"), self.string(name));
        let function = self.function(source, &[0, 0, 0, number(0), number(1), name, number(9)]);
        self.objects.last().filter(|last| last.as_ptr() as u64 + 1 == function).unwrap()[3]
    }

    /// Code of `f`, in which `g` is inlined, and in that `h`; returns where it begins.
    fn code(&mut self, kind: u64) -> u64 {
        let [f, g, h] = ["f", "g", "h"].map(|name| self.shared(name));
        let place = |place: u64, call: u64| call << 31 | (place + 1) << 1;
        // Each call: its place, and its function among the literals.
        let calls = [place(20, 0), 1, place(30, 1), 0].map(u64::to_ne_bytes).concat();
        let (calls, literals) = (self.bytes(&calls), self.array(&[h, g]));
        let data = self.array(&[0, 0, literals, 0, 0, number(7), f, calls]);
        let (mut table, mut last) = (vec![], (0, 0));
        for (at, position) in [(4, place(10, 0)), (8, place(33, 2)), (16, place(25, 1)), (24, place(12, 0))] {
            let difference = position as i64 - last.1;
            for mut rest in [2 * (at - last.0), (difference << 1 ^ difference >> 63) as u64] {
                while rest > 127 {
                    table.push(rest as u8 | 128);
                    rest >>= 7;
                }
                table.push(rest as u8);
            }
            last = (at, position as i64);
        }
        let positions = self.bytes(&table);
        let map = self.map(STREAM);
        let stream = self.put(vec![0; 40]) - 1;
        let start = (stream + 32).next_multiple_of(32);
        let description =
            self.object(DESCRIPTION, &[data, positions, 0, start - 31, start, kind | 0x100 | SIZE << 32]);
        let at_header = (start - 32 - stream) as usize / 8;
        let code = self.objects.iter_mut().find(|object| object.as_ptr() as u64 == stream).unwrap();
        (code[at_header], code[at_header + 1]) = (map, description);
        start
    }
}

/// The code at `pc`, and the names of its functions.
fn read(pc: u64) -> Option<(Compiled, Vec<String>)> {
    // SAFETY: zeroed memory is valid.
    let (mut blocks, mut chain): (Box<Blocks>, Box<Chain>) =
        unsafe { (Box::new_zeroed().assume_init(), Box::new_zeroed().assume_init()) };
    let code = Compiled::read(&COMPILED, pc, (&mut blocks, -1), KnownKeys::new(&[]), &mut chain)?;
    assert!(code.is_unchanged(&COMPILED, (&mut blocks, -1)));
    let name = |frame: &Frame| chain.content(*frame).and_then(Code::read).map(|code| code.name.to_string());
    Some((code, chain.frames().iter().filter_map(name).collect()))
}

#[test]
fn inlined_functions_run_at_the_instructions_that_the_table_says() {
    let mut world = World::default();
    let start = world.code(TURBOFAN);
    let (code, names) = read(start + 9).unwrap();
    assert_eq!(
        (code.range.clone(), names),
        (start..start + SIZE, ["f", "g", "h"].map(String::from).to_vec())
    );
    let (f, g, h) = (0, 1, 2);
    let at = |offset, is_exact| code.running(start + offset, is_exact);
    let in_h: Vec<RunningAt> = vec![(h, Some(33)), (g, Some(30)), (f, Some(20))];
    assert_eq!([at(8, true), at(15, true), at(16, false)], [in_h.clone(), in_h.clone(), in_h]);
    assert_eq!(at(16, true), [(g, Some(25)), (f, Some(20))]);
    assert_eq!([at(8, false), at(90, true)], [[(f, Some(10))], [(f, Some(12))]]);
    assert_eq!(at(3, true), [], "before the first entry");
}

#[test]
fn code_is_known_to_have_been_replaced() {
    let mut world = World::default();
    let start = world.code(TURBOFAN);
    let (code, _) = read(start).unwrap();
    // SAFETY: zeroed memory is valid.
    let mut blocks: Box<Blocks> = unsafe { Box::new_zeroed().assume_init() };
    let description = world.objects.len() - 1;
    for word in [1, 2, 6] {
        let before = world.objects[description][word];
        world.objects[description][word] ^= 8;
        assert!(!code.is_unchanged(&COMPILED, (&mut blocks, -1)), "{word}");
        world.objects[description][word] = before;
    }
    assert!(code.is_unchanged(&COMPILED, (&mut blocks, -1)));
}

#[test]
fn code_of_other_kinds_and_what_is_no_code_have_no_functions() {
    let mut world = World::default();
    let start = world.code(10);
    let (code, names) = read(start + 5).unwrap();
    assert_eq!((names.len(), code.running(start + 9, true)), (0, vec![]));
    assert!(read(start + SIZE + 1).is_none());
    assert!(read(8).is_none());
}

#[test]
fn damaged_descriptions_of_code_are_none_or_lead_to_its_functions() {
    let mut world = World::default();
    let start = world.code(TURBOFAN);
    with_damage(&mut world, 2000, || {
        // SAFETY: zeroed memory is valid.
        let (mut blocks, mut chain): (Box<Blocks>, Box<Chain>) =
            unsafe { (Box::new_zeroed().assume_init(), Box::new_zeroed().assume_init()) };
        let known = KnownKeys::new(&[]);
        if let Some(code) = Compiled::read(&COMPILED, start + 9, (&mut blocks, -1), known, &mut chain) {
            let running = (0..SIZE).flat_map(|at| code.running(start + at, true));
            assert!(running.into_iter().all(|(function, _)| function < chain.frames().len()));
        }
    });
    assert!(read(start + 9).is_some());
}
