//! The few x86-64 instructions whose effect on the stack pointer is certain, for reading the
//! beginnings of functions and code without branches.
//!
//! Source: Intel's manual, volume 2, chapter 2 (prefixes, ModRM, SIB) and the opcode map in
//! appendix A. Not a disassembler: what writes sp or fp in any other way, what branches, and what
//! is rare is not known here.

/// What an instruction does to the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It leaves sp and fp alone.
    None,
    /// It pushes a register.
    Push,
    /// It pops a register other than sp and fp.
    Pop,
    /// It moves sp down by so many bytes; negative: up.
    Down(i32),
    /// It calls a function, which returns with sp as it was.
    Call,
    /// It returns to the caller.
    Return,
}

/// One instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// Bytes.
    pub length: usize,
    /// See there.
    pub effect: Effect,
}

impl Instruction {
    /// The instruction that `code` begins with; `None` if it is not among the known ones or not
    /// whole.
    pub fn decode(code: &[u8]) -> Option<Instruction> {
        let of = |length: usize, effect| (code.len() >= length).then_some(Instruction { length, effect });
        let (prefix, rex, rest) = match *code {
            [0xf3, 0x0f, 0x1e, 0xfa, ..] => return of(4, Effect::None), // endbr64
            // mov %fs:disp32,%reg: the stack protector's canary
            [0x64, 0x48, 0x8b, modrm, 0x25, ..] if modrm & 0xc7 == 4 => return of(9, Effect::None),
            [0x0f, 0x1f, ..] => (1, 0, code.get(1..)?), // nop with an operand
            [rex @ 0x40..=0x4f, ref rest @ ..] => (1, rex, rest),
            ref rest => (0, 0, rest),
        };
        let (wide, base, register) = (rex & 8 != 0, rex & 1, rex >> 2 & 1);
        let with_operand =
            |immediate: usize, effect| of(prefix + 1 + operand_bytes(rest.get(1..)?)? + immediate, effect);
        let on_sp = |modrm: u8| wide && base == 0 && modrm & 7 == 4;
        match *rest {
            [0x50..=0x57, ..] => of(prefix + 1, Effect::Push),
            [opcode @ 0x58..=0x5f, ..] if !is_sp_or_fp(opcode, base) => of(prefix + 1, Effect::Pop),
            // sub and add $imm8,%rsp, $imm32,%rsp
            [0x83, modrm @ 0xec, size, ..] if on_sp(modrm) => of(4, Effect::Down(i32::from(size as i8))),
            [0x83, modrm @ 0xc4, size, ..] if on_sp(modrm) => of(4, Effect::Down(-i32::from(size as i8))),
            [0x81, modrm @ 0xec, a, b, c, d, ..] if on_sp(modrm) => {
                of(7, Effect::Down(i32::from_le_bytes([a, b, c, d])))
            }
            [0x81, modrm @ 0xc4, a, b, c, d, ..] if on_sp(modrm) => {
                of(7, Effect::Down(i32::from_le_bytes([a, b, c, d]).checked_neg()?))
            }
            [0xc3, ..] if prefix == 0 => of(1, Effect::Return),
            [0xe8, ..] if prefix == 0 => of(5, Effect::Call),
            [0xff, modrm, ..] if modrm >> 3 & 7 == 2 => with_operand(0, Effect::Call),
            // mov $imm32,%reg
            [opcode @ 0xb8..=0xbf, ..] if !wide && !is_sp_or_fp(opcode, base) => of(prefix + 5, Effect::None),
            // mov to memory; mov and xor between registers
            [0x88 | 0x89, modrm, ..] if modrm >> 6 != 3 => with_operand(0, Effect::None),
            [0x31 | 0x89, modrm, ..] if modrm >> 6 == 3 && !is_sp_or_fp(modrm, base) => {
                with_operand(0, Effect::None)
            }
            // mov $imm to memory or to a register
            [0xc6, modrm, ..] if modrm >> 6 != 3 => with_operand(1, Effect::None),
            [0xc7, modrm, ..] if modrm >> 6 != 3 || !is_sp_or_fp(modrm, base) => {
                with_operand(4, Effect::None)
            }
            // movslq, mov, lea into a register
            [0x63 | 0x8b | 0x8d, modrm, ..] if !is_sp_or_fp(modrm >> 3, register) => {
                with_operand(0, Effect::None)
            }
            // test; the nop of above
            [0x84 | 0x85 | 0x1f, _, ..] => with_operand(0, Effect::None),
            _ => None,
        }
    }
}

/// Whether the low three bits of a register's number, with its bit of the REX prefix, name sp or
/// fp.
fn is_sp_or_fp(number: u8, extension: u8) -> bool {
    extension == 0 && matches!(number & 7, 4 | 5)
}

/// Length of ModRM, SIB and displacement.
fn operand_bytes(code: &[u8]) -> Option<usize> {
    let (&modrm, sib) = (code.first()?, code.get(1));
    let has_sib = modrm >> 6 != 3 && modrm & 7 == 4;
    let no_base = if has_sib { sib? & 7 == 5 } else { modrm & 7 == 5 };
    let displacement = match modrm >> 6 {
        0 if no_base => 4,
        1 => 1,
        2 => 4,
        _ => 0,
    };
    Some(1 + usize::from(has_sib) + displacement)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_have_the_lengths_and_effects_that_objdump_shows() {
        let cases: [(&[u8], Effect); 26] = [
            (&[0xf3, 0x0f, 0x1e, 0xfa], Effect::None),                  // endbr64
            (&[0x55], Effect::Push),                                    // push %rbp
            (&[0x41, 0x57], Effect::Push),                              // push %r15
            (&[0x5b], Effect::Pop),                                     // pop %rbx
            (&[0x41, 0x5c], Effect::Pop),                               // pop %r12
            (&[0x48, 0x83, 0xec, 0x68], Effect::Down(0x68)),            // sub $0x68,%rsp
            (&[0x48, 0x83, 0xc4, 0x80], Effect::Down(128)),             // add $-128,%rsp
            (&[0x48, 0x81, 0xec, 0x10, 1, 0, 0], Effect::Down(0x110)),  // sub $0x110,%rsp
            (&[0x48, 0x81, 0xc4, 0x10, 1, 0, 0], Effect::Down(-0x110)), // add $0x110,%rsp
            (&[0xe8, 1, 2, 3, 4], Effect::Call),                        // call
            (&[0xff, 0x15, 1, 2, 3, 4], Effect::Call),                  // call *0x4030201(%rip)
            (&[0x41, 0xff, 0x54, 0x24, 8], Effect::Call),               // call *8(%r12)
            (&[0xff, 0xd0], Effect::Call),                              // call *%rax
            (&[0xc3], Effect::Return),                                  // ret
            (&[0xbe, 1, 0, 0, 0], Effect::None),                        // mov $1,%esi
            (&[0x41, 0xbc, 1, 0, 0, 0], Effect::None),                  // mov $1,%r12d
            (&[0x49, 0xc7, 0xc0, 0xff, 0xff, 0xff, 0xff], Effect::None), // mov $-1,%r8
            (&[0x48, 0x89, 0x55, 0x80], Effect::None),                  // mov %rdx,-0x80(%rbp)
            (&[0x48, 0x89, 0x04, 0x24], Effect::None),                  // mov %rax,(%rsp)
            (&[0x64, 0x48, 0x8b, 0x04, 0x25, 0x28, 0, 0, 0], Effect::None), // mov %fs:0x28,%rax
            (&[0x45, 0x31, 0xc0], Effect::None),                        // xor %r8d,%r8d
            (&[0x48, 0x63, 0xd7], Effect::None),                        // movslq %edi,%rdx
            (&[0xc7, 0x44, 0x24, 0x0c, 1, 0, 0, 0], Effect::None),      // movl $1,0xc(%rsp)
            (&[0x48, 0x85, 0xf6], Effect::None),                        // test %rsi,%rsi
            (&[0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0], Effect::None),         // nopl 0(%rax,%rax,1)
            (&[0x80 | 0xb, 0x04, 0xdd, 0x10, 0, 0, 0], Effect::None),   // mov 0x10(,%rbx,8),%eax
        ];
        for (code, effect) in cases {
            let expected = Some(Instruction { length: code.len(), effect });
            assert_eq!(Instruction::decode(code), expected, "{code:x?}");
            for length in 0..code.len() {
                assert_eq!(Instruction::decode(&code[..length]), None, "{code:x?} cut to {length}");
            }
        }
    }

    #[test]
    fn what_moves_the_stack_in_other_ways_is_not_known() {
        let cases: [&[u8]; 12] = [
            &[0x5d],                         // pop %rbp
            &[0x5c],                         // pop %rsp
            &[0xc9],                         // leave
            &[0x48, 0x89, 0xe5],             // mov %rsp,%rbp
            &[0x48, 0x89, 0xec],             // mov %rbp,%rsp
            &[0x48, 0x8b, 0x24, 0x24],       // mov (%rsp),%rsp
            &[0x48, 0x8d, 0x64, 0x24, 0xf0], // lea -16(%rsp),%rsp
            &[0x48, 0x83, 0xe4, 0xe0],       // and $-32,%rsp
            &[0x49, 0x83, 0xec, 0x08],       // sub $8,%r12
            &[0x74, 0x01],                   // je
            &[0xeb, 0x01],                   // jmp
            &[0x48, 0xc7, 0xc4, 0, 0, 0, 0], // mov $0,%rsp
        ];
        for code in cases {
            assert_eq!(Instruction::decode(code), None, "{code:x?}");
        }
    }

    #[test]
    fn any_bytes_are_an_answer() {
        let mut state = 1u64;
        for _ in 0..1_000_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let bytes = state.to_be_bytes();
            let length = Instruction::decode(&bytes).map_or(1, |instruction| instruction.length);
            assert!((1..=bytes.len()).contains(&length));
        }
    }
}
