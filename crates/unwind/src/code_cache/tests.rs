extern crate std;
use super::*;
use std::vec::Vec;

pub(crate) const LOW: u64 = 0x10_0000;
pub(crate) const SEGMENT: u64 = 128;
const SEGMENTS: u64 = 0x8_0000;
/// The first segment of the piece, and how many it has.
const FIRST: u64 = 3;
const COUNT: u64 = 300;
pub(crate) const STACK: u64 = 0x7000;
const FRAME: u64 = 0x60;

/// A piece of code in a heap, and a stack.
pub(crate) struct World {
    pub(crate) heap: Vec<u8>,
    segments: Vec<u8>,
    pub(crate) stack: [u64; 16],
}

impl Memory for World {
    fn word(&mut self, address: u64) -> Option<u64> {
        let mut bytes = [0; 8];
        self.code(address, &mut bytes).then(|| u64::from_le_bytes(bytes))
    }

    fn code(&mut self, address: u64, buffer: &mut [u8]) -> bool {
        let stack: Vec<u8> = self.stack.iter().flat_map(|word| word.to_le_bytes()).collect();
        let parts = [(LOW, &self.heap), (SEGMENTS, &self.segments), (STACK, &stack)];
        let found = parts.iter().find_map(|(low, bytes)| {
            let at = usize::try_from(address.checked_sub(*low)?).ok()?;
            bytes.get(at..at.checked_add(buffer.len())?)
        });
        found.is_some_and(|found| {
            buffer.copy_from_slice(found);
            true
        })
    }
}

pub(crate) const CACHE: CodeCache = CodeCache {
    heaps: [
        CodeHeap { memory: Range { low: LOW, high: LOW + 400 * SEGMENT }, segments: SEGMENTS, shift: 7 },
        CodeHeap::NONE,
        CodeHeap::NONE,
        CodeHeap::NONE,
    ],
    interpreter: Range { low: LOW, high: LOW + SEGMENT },
    block_header: 16,
    size: 12,
    name: 40,
    frame_size: 28,
    frame_complete: 20,
    is_short: false,
    code: CodeStart::Address(32),
    deoptimized: [CodeStart::Address(128), CodeStart::Distance(136)],
    original_pc: 144,
    call_stub: 0,
};
pub(crate) const PIECE: u64 = LOW + FIRST * SEGMENT + 16;
pub(crate) const CODE: u64 = PIECE + 0x100;
const DEOPTIMIZED: u64 = CODE + 0x2000;

pub(crate) fn world() -> World {
    let mut heap = std::vec![0; 400 * SEGMENT as usize];
    let mut put = |at: u64, bytes: &[u8]| {
        let at = (PIECE + at - LOW) as usize;
        heap[at..at + bytes.len()].copy_from_slice(bytes);
    };
    put(12, &((COUNT * SEGMENT - 16) as u32).to_le_bytes());
    put(20, &12u32.to_le_bytes());
    put(28, &(FRAME as u32 / 8).to_le_bytes());
    put(32, &CODE.to_le_bytes());
    put(128, &DEOPTIMIZED.to_le_bytes());
    put(136, &0x9000u32.to_le_bytes());
    put(144, &0x18u32.to_le_bytes());
    // 0, 1, … 254, 1, 2, … as HotSpot writes them.
    let mut segments = std::vec![FREE; 400];
    for at in 0..COUNT {
        segments[(FIRST + at) as usize] = if at == 0 { 0 } else { ((at - 1) % 254 + 1) as u8 };
    }
    World { heap, segments, stack: [0; 16] }
}

#[test]
fn a_piece_of_code_is_found_from_each_of_its_segments() {
    let mut world = world();
    for pc in [CODE, CODE + 1, PIECE + 254 * SEGMENT, PIECE + 255 * SEGMENT, PIECE + 299 * SEGMENT - 1] {
        let piece = CACHE.piece(&mut world, pc).unwrap();
        assert_eq!((piece.start, piece.code, piece.complete, piece.frame), (PIECE, CODE, CODE + 12, FRAME));
    }
    let behind = LOW + (FIRST + COUNT) * SEGMENT;
    for pc in [LOW, PIECE - 1, behind, LOW + 400 * SEGMENT, LOW - 1] {
        assert_eq!(CACHE.piece(&mut world, pc), None, "{pc:x}");
    }
    world.segments[FIRST as usize] = 9;
    assert_eq!(CACHE.piece(&mut world, CODE), None, "damaged");
}

/// Regression: each frame of a recursion was looked up by system calls: 15,000 took 100 ms.
#[test]
fn a_walk_looks_a_return_address_up_once() {
    let (mut world, mut met) = (world(), CompiledRules::default());
    let pcs = [CODE + 100, CODE + 200];
    for pc in pcs {
        assert_eq!(Some(met.rule(&CACHE, &mut world, pc)), Rule::sp(FRAME as i64, -16));
    }
    world.segments.fill(FREE);
    let known = pcs.map(|pc| met.rule(&CACHE, &mut world, pc) != Rule::NONE);
    assert_eq!(known, [true, true]);
}

#[test]
fn compiled_code_has_the_rule_of_its_frame_size_unless_it_is_not_valid_any_more() {
    let mut world = world();
    assert_eq!(Some(CACHE.rule(&mut world, CODE + 100)), Rule::sp(FRAME as i64, -16));
    assert_eq!(CACHE.rule(&mut world, LOW + 8), Rule::NONE, "the interpreter");
    assert_eq!(CACHE.rule(&mut world, DEOPTIMIZED - 1), Rule::NONE);
    world.stack[4] = CODE + 0x77;
    assert_eq!(CACHE.original_pc(&mut world, DEOPTIMIZED, STACK + 8), Some(CODE + 0x77));
    assert_eq!(CACHE.original_pc(&mut world, DEOPTIMIZED + 1, STACK + 8), None);
    world.stack[4] = LOW;
    assert_eq!(CACHE.original_pc(&mut world, DEOPTIMIZED, STACK + 8), None, "not in this code");
}
