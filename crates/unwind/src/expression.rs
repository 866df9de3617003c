//! DWARF expressions (DWARF 5, section 2.5), as far as call frame information
//! uses them: no objects, no calls, no location lists. Bounded in steps and stack.

use crate::dwarf::*;
use crate::memory::Memory;

const STACK: usize = 12;
const MAX_STEPS: usize = 64;

/// Reads the bytes of an expression.
struct Bytes<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Bytes<'_> {
    fn byte(&mut self) -> Option<u8> {
        let byte = *self.bytes.get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    #[inline(never)]
    fn unsigned(&mut self, size: u32) -> Option<u64> {
        let mut value = 0;
        for n in 0..size {
            value |= u64::from(self.byte()?) << (8 * n);
        }
        Some(value)
    }

    fn signed(&mut self, size: u32) -> Option<u64> {
        let unused = 64 - 8 * size;
        Some(((self.unsigned(size)? << unused) as i64 >> unused) as u64)
    }

    #[inline(never)]
    fn uleb(&mut self) -> Option<u64> {
        let (mut value, mut shift) = (0u64, 0u32);
        loop {
            let byte = self.byte()?;
            if shift < 64 {
                value |= u64::from(byte & 0x7f) << shift;
            }
            shift += 7;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
    }

    #[inline(never)]
    fn sleb(&mut self) -> Option<u64> {
        let (mut value, mut shift) = (0u64, 0u32);
        loop {
            let byte = self.byte()?;
            if shift < 64 {
                value |= u64::from(byte & 0x7f) << shift;
            }
            shift += 7;
            if byte & 0x80 == 0 {
                if byte & 0x40 != 0 && shift < 64 {
                    value |= u64::MAX << shift;
                }
                return Some(value);
            }
        }
    }

    fn jump(&mut self) -> Option<()> {
        let distance = self.signed(2)? as i64 as isize;
        self.at = self.at.checked_add_signed(distance)?;
        (self.at <= self.bytes.len()).then_some(())
    }
}

/// What an expression computes with; lent by the caller, whose own stack may be short.
#[derive(Debug)]
pub struct Stack {
    values: [u64; STACK],
    depth: usize,
}

impl Stack {
    /// An empty one.
    pub const fn new() -> Stack {
        Stack { values: [0; STACK], depth: 0 }
    }

    #[inline(never)]
    fn push(&mut self, value: u64) -> Option<()> {
        *self.values.get_mut(self.depth)? = value;
        self.depth += 1;
        Some(())
    }

    #[inline(never)]
    fn pop(&mut self) -> Option<u64> {
        self.depth = self.depth.checked_sub(1)?;
        self.values.get(self.depth).copied()
    }

    fn peek(&self, from_top: usize) -> Option<u64> {
        self.values.get(self.depth.checked_sub(from_top)?.checked_sub(1)?).copied()
    }
}

impl Default for Stack {
    fn default() -> Stack {
        Stack::new()
    }
}

/// The value of `expression`, with `initial` on the stack at its start.
/// `register` answers by DWARF number. `None`: it cannot be computed. There is one copy of it for
/// all callers, and it is short: all of them are rare.
#[inline(never)]
pub fn evaluate<M: Memory + ?Sized>(
    expression: &[u8],
    initial: Option<u64>,
    memory: &mut M,
    stack: &mut Stack,
    register: &mut dyn FnMut(&mut M, u8) -> Option<u64>,
) -> Option<u64> {
    let mut code = Bytes { bytes: expression, at: 0 };
    stack.depth = 0;
    if let Some(value) = initial {
        stack.push(value)?;
    }
    for _ in 0..MAX_STEPS {
        let Some(operation) = code.byte() else { return stack.pop() };
        match operation {
            DW_OP_DEREF => {
                let address = stack.pop()?;
                stack.push(memory.word(address)?)?;
            }
            // The loader has relocated it, in sections that are in memory.
            DW_OP_ADDR => stack.push(code.unsigned(8)?)?,
            DW_OP_CONST1U | DW_OP_CONST2U | DW_OP_CONST4U | DW_OP_CONST8U => {
                stack.push(code.unsigned(1 << ((operation - DW_OP_CONST1U) / 2))?)?
            }
            DW_OP_CONST1S | DW_OP_CONST2S | DW_OP_CONST4S | DW_OP_CONST8S => {
                stack.push(code.signed(1 << ((operation - DW_OP_CONST1S) / 2))?)?
            }
            DW_OP_CONSTU => stack.push(code.uleb()?)?,
            DW_OP_CONSTS => stack.push(code.sleb()?)?,
            DW_OP_DUP => stack.push(stack.peek(0)?)?,
            DW_OP_DROP => drop(stack.pop()?),
            DW_OP_OVER => stack.push(stack.peek(1)?)?,
            DW_OP_PICK => {
                let from_top = code.byte()?;
                stack.push(stack.peek(from_top as usize)?)?;
            }
            DW_OP_SWAP => {
                let (top, below) = (stack.pop()?, stack.pop()?);
                stack.push(top)?;
                stack.push(below)?;
            }
            DW_OP_ROT => {
                let (top, second, third) = (stack.pop()?, stack.pop()?, stack.pop()?);
                stack.push(top)?;
                stack.push(third)?;
                stack.push(second)?;
            }
            DW_OP_ABS => {
                let value = stack.pop()?;
                stack.push((value as i64).unsigned_abs())?;
            }
            DW_OP_NEG => {
                let value = stack.pop()?;
                stack.push(value.wrapping_neg())?;
            }
            DW_OP_NOT => {
                let value = stack.pop()?;
                stack.push(!value)?;
            }
            DW_OP_PLUS_UCONST => {
                let value = stack.pop()?;
                stack.push(value.wrapping_add(code.uleb()?))?;
            }
            DW_OP_AND..=DW_OP_MUL | DW_OP_OR | DW_OP_PLUS | DW_OP_SHL..=DW_OP_XOR | DW_OP_EQ..=DW_OP_NE => {
                let (right, left) = (stack.pop()?, stack.pop()?);
                stack.push(binary(operation, left, right)?)?;
            }
            DW_OP_BRA => {
                if stack.pop()? != 0 {
                    code.jump()?;
                } else {
                    code.signed(2)?;
                }
            }
            DW_OP_SKIP => code.jump()?,
            DW_OP_LIT0..=DW_OP_LIT31 => stack.push(u64::from(operation - DW_OP_LIT0))?,
            DW_OP_BREG0..=DW_OP_BREG31 => {
                let offset = code.sleb()?;
                stack.push(register(memory, operation - DW_OP_BREG0)?.wrapping_add(offset))?;
            }
            DW_OP_BREGX => {
                let number = u8::try_from(code.uleb()?).ok()?;
                let offset = code.sleb()?;
                stack.push(register(memory, number)?.wrapping_add(offset))?;
            }
            DW_OP_NOP => {}
            _ => return None,
        }
    }
    None
}

fn binary(operation: u8, left: u64, right: u64) -> Option<u64> {
    let (signed_left, signed_right) = (left as i64, right as i64);
    let shift = u32::try_from(right).ok();
    Some(match operation {
        DW_OP_AND => left & right,
        DW_OP_DIV => signed_left.checked_div(signed_right)? as u64,
        DW_OP_MINUS => left.wrapping_sub(right),
        DW_OP_MOD => left.checked_rem(right)?,
        DW_OP_MUL => left.wrapping_mul(right),
        DW_OP_OR => left | right,
        DW_OP_PLUS => left.wrapping_add(right),
        DW_OP_SHL => shift.and_then(|by| left.checked_shl(by)).unwrap_or(0),
        DW_OP_SHR => shift.and_then(|by| left.checked_shr(by)).unwrap_or(0),
        DW_OP_SHRA => (signed_left >> right.min(63)) as u64,
        DW_OP_XOR => left ^ right,
        DW_OP_EQ => u64::from(left == right),
        DW_OP_GE => u64::from(signed_left >= signed_right),
        DW_OP_GT => u64::from(signed_left > signed_right),
        DW_OP_LE => u64::from(signed_left <= signed_right),
        DW_OP_LT => u64::from(signed_left < signed_right),
        DW_OP_NE => u64::from(left != right),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Doubles;
    impl Memory for Doubles {
        fn word(&mut self, address: u64) -> Option<u64> {
            Some(address * 2)
        }
        fn code(&mut self, _: u64, _: &mut [u8]) -> bool {
            false
        }
    }

    fn value(expression: &[u8]) -> Option<u64> {
        evaluate(expression, None, &mut Doubles, &mut Stack::new(), &mut |_, register| {
            Some(1000 * u64::from(register))
        })
    }

    #[test]
    fn the_plt_stubs_expression_depends_on_the_pc() {
        // breg7 8; breg16 0; lit15; and; lit11; ge; lit3; shl; plus
        let expression = [0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22];
        assert_eq!(value(&expression), Some(7000 + 8)); // 16000 & 15 == 0
        let at_the_push = evaluate(&expression, None, &mut Doubles, &mut Stack::new(), &mut |_, r| {
            Some(if r == 7 { 100 } else { 0x100b })
        });
        assert_eq!(at_the_push, Some(116));
    }

    #[test]
    fn hand_written_assembly_saves_the_stack_pointer_in_memory() {
        // breg7 72; deref; plus_uconst 8: as perlasm code in libcrypto says it.
        assert_eq!(value(&[0x77, 0xc8, 0x00, 0x06, 0x23, 8]), Some((7000 + 72) * 2 + 8));
    }

    #[test]
    fn constants_are_extended_by_their_sign() {
        assert_eq!(value(&[0x09, 0xff]), Some(u64::MAX));
        assert_eq!(value(&[0x0b, 0xfe, 0xff]), Some(u64::MAX - 1));
        assert_eq!(value(&[0x08, 0xff]), Some(255));
        assert_eq!(value(&[0x11, 0x7f]), Some(u64::MAX));
        assert_eq!(value(&[0x0e, 1, 2, 3, 4, 5, 6, 7, 8]), Some(0x0807_0605_0403_0201));
    }

    #[test]
    fn quotients_remainders_and_the_three_on_top() {
        // lit16, lit3: div, mod; const1s -16, lit3: div
        assert_eq!(value(&[0x40, 0x33, 0x1b]), Some(5));
        assert_eq!(value(&[0x40, 0x33, 0x1d]), Some(1));
        assert_eq!(value(&[0x09, 0xf0, 0x33, 0x1b]), Some(-5_i64 as u64));
        assert_eq!(value(&[0x40, 0x30, 0x1b]), None, "by zero");
        assert_eq!(value(&[0x40, 0x30, 0x1d]), None, "by zero");
        // lit1, lit2, lit3, rot: 3 1 2
        assert_eq!(value(&[0x31, 0x32, 0x33, 0x17]), Some(2));
        assert_eq!(value(&[0x31, 0x32, 0x33, 0x17, 0x13]), Some(1));
        assert_eq!(value(&[0x31, 0x32, 0x33, 0x17, 0x13, 0x13]), Some(3));
        assert_eq!(value(&[0x03, 1, 2, 0, 0, 0, 0, 0, 0]), Some(0x201));
    }

    #[test]
    fn broken_expressions_have_no_value() {
        assert_eq!(value(&[]), None);
        assert_eq!(value(&[0x22]), None, "plus without operands");
        assert_eq!(value(&[0x77]), None, "register without an offset");
        assert_eq!(value(&[0x2f, 0xfd, 0xff]), None, "an endless loop");
        assert_eq!(value(&[0x2f, 0x00, 0x80]), None, "a jump out of the expression");
        assert_eq!(value(&[0x30; 60]), None, "more than the stack holds");
        assert_eq!(value(&[0xe0]), None, "an unknown operation");
    }
}
