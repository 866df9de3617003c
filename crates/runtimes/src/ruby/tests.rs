use super::*;
use crate::blocks::Blocks;
use crate::code::Code;

/// That of 3.3.
/// That of 3.3.
const ROW: RubyRow = ROWS[4];
const TID: u32 = 4711;
/// Of the stack of values, in words.
const STACK: usize = 64;
const FRAME: usize = ROW.frame_bytes as usize / 8;
const FLAGS_OF_CODE: u64 = 0x1a | 7 << 12;
const FLAGS_OF_METHOD: u64 = 0x1a | 6 << 12;
/// An environment of a method, and of a block.
const OF_METHOD: u64 = 0x1111_0001 | 2;
const OF_C: u64 = C_FUNCTION | 2 | IS_OF_C;
const OF_BLOCK: u64 = 0x2222_0001;

/// A structure of zeroes but for these words.
fn structure(words: &[(u16, u64)]) -> Box<[u64]> {
    let mut structure = vec![0; 64];
    for &(at, word) in words {
        structure[at as usize / 8] |= word << (8 * (at % 8));
    }
    structure.into()
}

fn address(structure: &[u64]) -> u64 {
    structure.as_ptr() as u64
}

/// What lies in the memory of a Ruby with one thread.
#[derive(Default)]
struct Image {
    structures: Vec<Box<[u64]>>,
    stack: Box<[u64]>,
    thread: u64,
}

impl Image {
    fn put(&mut self, words: &[(u16, u64)]) -> u64 {
        self.structures.push(structure(words));
        address(self.structures.last().unwrap())
    }

    fn string(&mut self, text: &str) -> u64 {
        let mut words = vec![(0, 5), (ROW.string_length, text.len() as u64)];
        let bytes = text.bytes().enumerate();
        words.extend(bytes.map(|(at, byte)| (ROW.string_inside + at as u16, u64::from(byte))));
        self.put(&words)
    }

    /// Code of four instructions, in one line.
    fn code(&mut self, label: &str, base: &str, line: u64, local: Option<u64>) -> (u64, u64) {
        let (path, label, base) = (self.string("a.rb"), self.string(label), self.string(base));
        let (lines, code) = (self.put(&[(ROW.line_number, line)]), self.put(&[]));
        let body = self.put(&[
            (ROW.body_type, if local.is_some() { 2 } else { 1 }),
            (ROW.body_size, 4),
            (ROW.body_code, code),
            (ROW.body_path, path),
            (ROW.body_label, label),
            (ROW.body_base_label, base),
            (ROW.body_lines, lines),
            (ROW.body_line_count, 1),
        ]);
        let iseq = self.put(&[(0, FLAGS_OF_CODE), (ROW.iseq_body, body)]);
        let of_body = self.structures.iter_mut().find(|structure| address(structure) == body).unwrap();
        of_body[ROW.body_local_iseq as usize / 8] = local.unwrap_or(iseq);
        (iseq, code + 16)
    }

    fn method(&mut self, class: &str, serial: u64) -> u64 {
        let path = self.string(class);
        let owner = self.put(&[(0, 2), (ROW.class_path, path)]);
        let definition = self.put(&[(ROW.definition_serial, serial), (ROW.definition_name, u64::from(b'+'))]);
        self.put(&[(0, FLAGS_OF_METHOD), (ROW.method_definition, definition), (ROW.method_owner, owner)])
    }

    /// A frame that is so far out, and its environment.
    fn frame(&mut self, out: usize, (iseq, pc): (u64, u64), environment: [u64; 3]) -> u64 {
        let at = 4 * (3 - out);
        self.stack[at..at + 3].copy_from_slice(&environment);
        let frame = STACK - FRAME * (out + 1);
        let environment = address(&self.stack[at + 2..]);
        self.stack[frame + ROW.frame_pc as usize / 8] = pc;
        self.stack[frame + ROW.frame_iseq as usize / 8] = iseq;
        self.stack[frame + ROW.frame_environment as usize / 8] = environment;
        environment
    }

    fn frame_at(&mut self, number: usize) -> &mut [u64] {
        &mut self.stack[STACK - FRAME * (number + 1)..][..FRAME]
    }

    /// A method `A#outer`, which calls a function of C, which calls a block.
    fn new() -> Image {
        let mut image = Image { stack: vec![0; STACK].into(), ..Image::default() };
        let (outer, plus) = (image.method("A", 1), image.method("Integer", 2));
        let code = image.code("outer", "outer", 7, None);
        let block = image.code("block in outer", "outer", 8, Some(code.0));
        image.frame(0, (0, 0), [0, 0, DUMMY | FINISH | IS_OF_C]);
        let environment = image.frame(1, code, [outer, 0, OF_METHOD | FINISH]);
        image.frame(2, (0, 0), [plus, 0, OF_C]);
        image.frame(3, block, [0, environment | 1, OF_BLOCK | FINISH]);
        let context = image.put(&[
            (ROW.context_stack, address(&image.stack)),
            (ROW.context_stack_words, STACK as u64),
            (ROW.context_frame, address(&image.stack[STACK - 4 * FRAME..])),
        ]);
        let native = image.put(&[(ROW.native_tid, TID.into())]);
        image.thread = image.put(&[(ROW.thread_context, context), (ROW.thread_native, native)]);
        let of_context = image.structures.iter_mut().find(|structure| address(structure) == context);
        of_context.unwrap()[ROW.context_thread as usize / 8] = image.thread;
        image
    }

    /// How the walk ends, and the functions with their lines, leaf first.
    fn walked(&mut self, tid: u32) -> (End, Vec<String>) {
        let plus = self.string("+");
        let part = self.put(&[(0, 7), (ROW.array_pointer, 0)]);
        let names = self.put(&[(0, plus)]);
        let of_part = self.structures.iter_mut().find(|structure| address(structure) == part).unwrap();
        of_part[ROW.array_pointer as usize / 8] = names - 16 * u64::from(b'+');
        let parts = self.put(&[(0, 7 | u64::from(ROW.flag_array_inside)), (ROW.array_inside, part)]);
        let list = self.put(&[(0, parts)]);
        let layout = RubyLayout {
            row: &ROW,
            machine: 0,
            current: CurrentContext::Unknown,
            names: list,
            id_class_path: 0,
            object: (0, 0),
            inner: (0, 0),
            tid_in_block: None,
        };
        // SAFETY: zeroed memory is valid for both.
        let (mut blocks, mut chain): (Box<Blocks>, Box<Chain>) =
            unsafe { (Box::new_zeroed().assume_init(), Box::new_zeroed().assume_init()) };
        let mut memory = BlockMemory::new(&mut blocks, -1);
        let thread = ThreadKey { tid, pointer: 0, pc: 0 };
        walk(&layout, self.thread, thread, &mut memory, KnownKeys::new(&[]), &mut chain);
        let text = |frame: &Frame| {
            if frame.key == 0 {
                return String::new();
            }
            let code = chain.content(*frame).and_then(Code::read).expect("a function");
            let end = if frame.is_entry { "." } else { "" };
            format!("{} {:?}{end}", code.name, code.line(frame.offset))
        };
        (chain.end(), chain.frames().iter().map(text).collect())
    }
}

#[test]
fn blocks_and_functions_of_c_stand_between_their_callers_and_those_whom_they_call() {
    let (end, functions) = Image::new().walked(TID);
    assert_eq!(end, End::Root);
    assert_eq!(functions, ["block in A#outer Some(8).", "Integer#+ None", "A#outer Some(7)."]);
    assert_eq!(Image::new().walked(TID + 1), (End::NoState, vec![]));
}

#[test]
fn a_frame_that_is_none_makes_the_chain_none() {
    let [pc, iseq, environment] =
        [ROW.frame_pc, ROW.frame_iseq, ROW.frame_environment].map(|at| at as usize / 8);
    for (at, wrong) in [(pc, 8), (iseq, 4096), (iseq, 12), (environment, 64), (environment, 3)] {
        let mut image = Image::new();
        image.frame_at(1)[at] = wrong;
        let (end, functions) = image.walked(TID);
        assert!(matches!(end, End::Inconsistent | End::Unreadable | End::Moving), "{at} {wrong}: {end:?}");
        assert_eq!(functions, Vec::<String>::new());
    }
}

#[test]
fn any_damage_ends_the_walk() {
    let mut state = 1u64;
    let mut number = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    for _ in 0..3000 {
        let mut image = Image::new();
        let count = image.structures.len();
        for _ in 0..=number(3) {
            let (structure, word, bit) = (number(count + 1), number(STACK), number(64));
            let words = image.structures.get_mut(structure).unwrap_or(&mut image.stack);
            words[word] ^= 1 << bit;
        }
        image.walked(TID);
    }
}

#[test]
fn variables_of_a_class_are_where_its_shape_says() {
    let row = ROWS.iter().find(|row| row.shape_bytes != 0).expect("that of 3.2");
    let shape = |number: u16, name: u64, count: u64, parent: u64| {
        let at = number * row.shape_bytes;
        [(at + row.shape_name, name), (at + row.shape_count, count), (at + row.shape_parent, parent)]
    };
    // A root, and a variable more in each shape behind it.
    let shapes = [shape(0, 0, 0, u32::MAX.into()), shape(1, 77, 1, 0), shape(2, 88, 2, 1)];
    let (shapes, variables) = (structure(&shapes.concat()), structure(&[(0, 1077), (8, 1088)]));
    let machine = structure(&[(row.machine_shapes, address(&shapes))]);
    let machine_at = structure(&[(0, address(&machine))]);
    let class = structure(&[(0, 2 | 2 << 32), (row.class_variables, address(&variables))]);
    let (current, names) = (CurrentContext::Unknown, 0);
    let layout = RubyLayout {
        row,
        machine: address(&machine_at),
        current,
        names,
        id_class_path: 88,
        object: (0, 0),
        inner: (0, 0),
        tid_in_block: None,
    };
    // SAFETY: zeroed memory is valid for both.
    let (mut blocks, mut chain): (Box<Blocks>, Box<Chain>) =
        unsafe { (Box::new_zeroed().assume_init(), Box::new_zeroed().assume_init()) };
    let memory = &mut BlockMemory::new(&mut blocks, -1);
    let known = KnownKeys::new(&[]);
    let mut walk = RubyWalk { layout: &layout, row, pc: 0, memory, known, chain: &mut chain };
    let object = walk.object(address(&class)).unwrap();
    assert_eq!(walk.class_path(object), Ok(1088));
    assert_eq!(walk.class_variable(object, 77), Ok(1077));
    assert_eq!(walk.class_variable(object, 99), Ok(0));
}
