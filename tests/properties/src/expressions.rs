//! DWARF expressions: where swipr's have a value, gimli's have the same, and no more is read than
//! the steps allow.

use crate::choices::Choices;
use gimli::{Encoding, EndianSlice, EvaluationResult, Expression, Format, LittleEndian, Location, Value};
use swipr_unwind::expression::{Stack, evaluate};
use swipr_unwind::memory::Memory;

/// Steps of swipr's evaluation, each of which reads one word at most.
const MAX_READS: usize = 64;
/// More steps than swipr's evaluation has.
const MAX_STEPS: u32 = 100;

/// Memory in which every word but some depends on its address.
#[derive(Default)]
struct Words {
    reads: usize,
}

fn word(address: u64) -> Option<u64> {
    (!address.is_multiple_of(5)).then(|| address.rotate_left(9) ^ 0x1234)
}

fn register(number: u8) -> Option<u64> {
    (number < 17).then(|| 0x7fff_0000 + 8 * u64::from(number))
}

impl Memory for Words {
    fn word(&mut self, address: u64) -> Option<u64> {
        self.reads += 1;
        word(address)
    }

    fn code(&mut self, _: u64, _: &mut [u8]) -> bool {
        false
    }
}

/// See the module's text.
pub fn check(bytes: &[u8]) {
    let mut choices = Choices::new(bytes);
    let initial = choices.flag().then_some(0x7fff_1000);
    let code = choices.rest();
    let mut memory = Words::default();
    let ours = evaluate(code, initial, &mut memory, &mut Stack::new(), &mut |_, number| register(number));
    assert!(memory.reads <= MAX_READS);
    if let Some(ours) = ours {
        match gimlis(code, initial) {
            Ok(theirs) => assert_eq!(Some(ours), theirs, "{code:x?}"),
            // Numbers longer than any compiler pads them.
            Err(gimli::Error::BadUnsignedLeb128 | gimli::Error::BadSignedLeb128) => {}
            Err(error) => panic!("{code:x?}: ours is {ours:#x}, gimli's {error}"),
        }
    }
}

fn gimlis(code: &[u8], initial: Option<u64>) -> gimli::Result<Option<u64>> {
    let encoding = Encoding { address_size: 8, format: Format::Dwarf32, version: 5 };
    let mut evaluation = Expression(EndianSlice::new(code, LittleEndian)).evaluation(encoding);
    evaluation.set_max_iterations(MAX_STEPS);
    if let Some(initial) = initial {
        evaluation.set_initial_value(initial);
    }
    let mut state = evaluation.evaluate()?;
    loop {
        state = match state {
            EvaluationResult::Complete => break,
            EvaluationResult::RequiresMemory { address, .. } => match word(address) {
                Some(word) => evaluation.resume_with_memory(Value::Generic(word))?,
                None => return Ok(None),
            },
            EvaluationResult::RequiresRegister { register: number, .. } => {
                match u8::try_from(number.0).ok().and_then(register) {
                    Some(value) => evaluation.resume_with_register(Value::Generic(value))?,
                    None => return Ok(None),
                }
            }
            EvaluationResult::RequiresRelocatedAddress(address) => {
                evaluation.resume_with_relocated_address(address)?
            }
            _ => return Ok(None),
        };
    }
    Ok(match evaluation.as_result() {
        [piece] => match piece.location {
            Location::Address { address } => Some(address),
            _ => None,
        },
        _ => None,
    })
}
