//! x86-64 instructions: how long they are, and what they do to the stack pointer and to the
//! registers that code keeps it in. What else they do is not known here. For reading the beginnings
//! of functions, and code that nothing describes.
//!
//! Source: Intel's manual, volume 2, chapter 2 (prefixes, ModRM, SIB, VEX, EVEX) and the opcode
//! maps in appendix A.

/// A general register, by its number in instructions.
pub type Register = u8;
/// The stack pointer.
pub const SP: Register = 4;
/// The frame pointer.
pub const FP: Register = 5;

/// What an instruction does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Nothing that matters here.
    None,
    /// push; `None`: no register.
    Push(Option<Register>),
    /// pop; `u8::MAX`: to memory, or the flags.
    Pop(Register),
    /// sp is moved down by so many bytes; negative: up.
    Down(i64),
    /// register = register + constant.
    Copy {
        /// The one that is written.
        to: Register,
        /// The other.
        from: Register,
        /// What is added.
        plus: i64,
    },
    /// register = *(register + constant).
    Load {
        /// The one that is written.
        to: Register,
        /// Where from.
        base: Register,
        /// Bytes from there.
        offset: i64,
    },
    /// *(register + constant) = register.
    Store {
        /// What is written.
        from: Register,
        /// Where to.
        base: Register,
        /// Bytes from there.
        offset: i64,
    },
    /// mov %rbp,%rsp; pop %rbp
    Leave,
    /// It writes this register in another way.
    Write(Register),
    /// A direct call goes so far from the next instruction; `None`: an indirect one.
    Call(Option<i32>),
    /// It returns to the caller.
    Return,
    /// A jump that is always taken.
    Jump(i32),
    /// A jump that is taken or not.
    Branch(i32),
    /// It goes nowhere that the instruction says.
    End,
}

/// One instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// Bytes.
    pub length: usize,
    /// See there.
    pub effect: Effect,
}

/// Prefixes, opcode map (0: one byte, 1: 0f, 2: 0f 38, 3: 0f 3a) and opcode.
struct Opcode {
    map: u8,
    opcode: u8,
    rex: u8,
    operand_16: bool,
    address_32: bool,
    is_vector: bool,
}

/// The operand that ModRM describes.
#[derive(Clone, Copy)]
struct Operand {
    /// The other operand, or more of the opcode.
    reg: u8,
    /// The register, if it is one.
    register: Option<Register>,
    /// Base and displacement, if it is memory with no other parts.
    memory: Option<(Register, i64)>,
}

/// The bytes that are not read yet.
struct Unread<'c> {
    rest: &'c [u8],
}

impl Unread<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (&first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(first)
    }

    fn signed(&mut self, bytes: usize) -> Option<i64> {
        let (read, rest) = self.rest.split_at_checked(bytes)?;
        self.rest = rest;
        let value = read.iter().rev().fold(0u64, |value, &byte| value << 8 | u64::from(byte));
        let unused = 64 - 8 * bytes as u32;
        Some(if bytes == 0 { 0 } else { (value << unused) as i64 >> unused })
    }
}

/// The instruction that `bytes` begin with; `None`: there is no such one, or it is not whole.
pub fn decode(bytes: &[u8]) -> Option<Instruction> {
    let mut code = Unread { rest: bytes };
    let opcode = opcode(&mut code)?;
    let operand = if has_operand(&opcode) { Some(operand(&mut code, &opcode)?) } else { None };
    let immediate = code.signed(immediate_bytes(&opcode, operand)?)?;
    let length = bytes.len() - code.rest.len();
    let effect = match opcode.map {
        _ if opcode.is_vector => Effect::None,
        0 => effect(&opcode, operand, immediate)?,
        _ => effect_behind_0f(&opcode, operand, immediate),
    };
    (length <= 15).then_some(Instruction { length, effect })
}

/// Whether `bytes` begin with rt_sigreturn(2), as code behind signal handlers does: `mov $15,%rax`
/// or `mov $15,%eax`; `syscall`. libgcc knows it by the same bytes.
pub fn is_signal_return(bytes: &[u8]) -> bool {
    let code = bytes.strip_prefix(&[0x48, 0xc7, 0xc0]).or_else(|| bytes.strip_prefix(&[0xb8]));
    code.is_some_and(|code| code.starts_with(&[15, 0, 0, 0, 0x0f, 0x05]))
}

fn opcode(code: &mut Unread<'_>) -> Option<Opcode> {
    let mut found =
        Opcode { map: 0, opcode: 0, rex: 0, operand_16: false, address_32: false, is_vector: false };
    loop {
        let byte = code.byte()?;
        match byte {
            0x66 => found.operand_16 = true,
            0x67 => found.address_32 = true,
            0x26 | 0x2e | 0x36 | 0x3e | 0x64 | 0x65 | 0xf0 | 0xf2 | 0xf3 => {}
            0x40..=0x4f => {
                found.rex = byte;
                continue;
            }
            other => {
                found.opcode = other;
                break;
            }
        }
        found.rex = 0; // it counts right before the opcode only
    }
    let vector = |found: &mut Opcode, map: u8, extensions: u8| {
        (found.map, found.is_vector) = (map, true);
        // VEX has the bits of REX inverted.
        found.rex = 0x40 | (!extensions >> 5 & 7);
    };
    match found.opcode {
        0xc5 => {
            vector(&mut found, 1, code.byte()? | 0x60);
            found.opcode = code.byte()?;
        }
        // AMD's XOP, where pop would have another register in ModRM.
        0x8f if code.rest.first()? & 0x38 == 0 => {}
        0xc4 | 0x62 | 0x8f => {
            let (is_evex, first) = (found.opcode == 0x62, code.byte()?);
            vector(&mut found, first & if is_evex { 7 } else { 31 }, first);
            code.signed(if is_evex { 2 } else { 1 })?;
            found.opcode = code.byte()?;
            found.map = match found.map {
                map @ 1..=3 => map,
                // AVX512-FP16 and XOP: without an immediate, and with one of a byte.
                5 | 6 | 9 => 2,
                8 => 3,
                _ => return None,
            };
        }
        0x0f => {
            (found.map, found.opcode) = match code.byte()? {
                0x38 => (2, code.byte()?),
                0x3a => (3, code.byte()?),
                other => (1, other),
            };
        }
        _ => {}
    }
    Some(found)
}

fn has_operand(opcode: &Opcode) -> bool {
    match (opcode.map, opcode.opcode) {
        (1, 0x77) => false,
        (1, _) if opcode.is_vector => true,
        (1, 0x05..=0x09 | 0x0b | 0x0e | 0x30..=0x37 | 0x80..=0x8f) => false,
        (1, 0xa0..=0xa2 | 0xa8..=0xaa | 0xc8..=0xcf) => false,
        (0, code @ 0x00..=0x3f) => code & 7 < 4,
        (0, 0x62 | 0x63 | 0x69 | 0x6b | 0x80..=0x8f | 0xc0 | 0xc1 | 0xc6 | 0xc7 | 0xd0..=0xd3) => true,
        (0, 0xd8..=0xdf | 0xf6 | 0xf7 | 0xfe | 0xff) => true,
        (0, _) => false,
        _ => true,
    }
}

fn operand(code: &mut Unread<'_>, opcode: &Opcode) -> Option<Operand> {
    let modrm = code.byte()?;
    let (mode, low) = (modrm >> 6, modrm & 7);
    let reg = modrm >> 3 & 7 | (opcode.rex & 4) << 1;
    let register = low | (opcode.rex & 1) << 3;
    if mode == 3 {
        return Some(Operand { reg, register: Some(register), memory: None });
    }
    let (mut base, mut has_base) = (register, low != 5 || mode != 0);
    if low == 4 {
        let sib = code.byte()?;
        let has_index = sib >> 3 & 7 != 4 || opcode.rex & 2 != 0;
        base = sib & 7 | (opcode.rex & 1) << 3;
        let is_alone = sib & 7 == 5 && mode == 0;
        let bytes = if is_alone { 4 } else { [0, 1, 4, 0].get(usize::from(mode)).copied()? };
        let offset = code.signed(bytes)?;
        let memory = (!is_alone && !has_index && !opcode.address_32).then_some((base, offset));
        return Some(Operand { reg, register: None, memory });
    }
    let bytes = if has_base { [0, 1, 4, 0].get(usize::from(mode)).copied()? } else { 4 };
    let offset = code.signed(bytes)?;
    has_base &= !opcode.address_32;
    base = if has_base { base } else { 0 };
    Some(Operand { reg, register: None, memory: has_base.then_some((base, offset)) })
}

/// `None`: there is no such instruction in the 64-bit code of programs.
fn immediate_bytes(opcode: &Opcode, operand: Option<Operand>) -> Option<usize> {
    let is_wide = opcode.rex & 8 != 0;
    let word = if opcode.operand_16 && !is_wide { 2 } else { 4 };
    let reg = operand.map_or(0, |operand| operand.reg & 7);
    Some(match (opcode.map, opcode.opcode) {
        (3, _) => 1,
        (2, _) => 0,
        (1, 0x70..=0x73 | 0xc2 | 0xc4..=0xc6) => 1,
        (1, _) if opcode.is_vector => 0,
        (1, 0xa4 | 0xac | 0xba) => 1,
        (1, 0x80..=0x8f) => 4,
        (1, 0x04 | 0x0a | 0x0c | 0x0f | 0x20..=0x27 | 0x36 | 0x39 | 0x3b..=0x3f) => return None,
        (1, _) => 0,
        // Of 32-bit code alone.
        (_, 0x06 | 0x07 | 0x0e | 0x16 | 0x17 | 0x1e | 0x1f | 0x27 | 0x2f | 0x37 | 0x3f) => return None,
        (_, 0x60..=0x62 | 0x82 | 0x9a | 0xc4 | 0xc5 | 0xce | 0xd4..=0xd6 | 0xea) => return None,
        (_, code @ 0x00..=0x3f) if code & 7 == 4 => 1,
        (_, code @ 0x00..=0x3f) if code & 7 == 5 => word,
        (_, 0x68 | 0x69 | 0x81 | 0xa9 | 0xc7) => word,
        (_, 0x6a | 0x6b | 0x70..=0x7f | 0x80 | 0x83 | 0xa8 | 0xb0..=0xb7 | 0xc0 | 0xc1 | 0xc6) => 1,
        (_, 0xcd | 0xe0..=0xe7 | 0xeb) => 1,
        (_, 0xa0..=0xa3) if opcode.address_32 => 4,
        (_, 0xa0..=0xa3) => 8,
        (_, 0xb8..=0xbf) if is_wide => 8,
        (_, 0xb8..=0xbf) => word,
        (_, 0xc2 | 0xca) => 2,
        (_, 0xc8) => 3,
        (_, 0xe8 | 0xe9) => 4,
        (_, 0xf6) if reg < 2 => 1,
        (_, 0xf7) if reg < 2 => word,
        _ => 0,
    })
}

/// Of the instructions of one byte.
fn effect(opcode: &Opcode, operand: Option<Operand>, immediate: i64) -> Option<Effect> {
    let numbered = opcode.opcode & 7 | (opcode.rex & 1) << 3;
    let Operand { reg, register, .. } = operand.unwrap_or(Operand { reg: 0, register: None, memory: None });
    let is_wide = opcode.rex & 8 != 0;
    let written = register.map_or(Effect::None, Effect::Write);
    let distance = i32::try_from(immediate).unwrap_or(0);
    Some(match opcode.opcode {
        // Comparisons read only; of the others, bit 1 says which operand is written.
        0x38..=0x3d | 0x84 | 0x85 | 0xa8 | 0xa9 => Effect::None,
        code @ 0x00..=0x3f if code & 7 > 3 => Effect::Write(0),
        code @ 0x00..=0x3f if code & 2 == 0 => written,
        0x00..=0x3f | 0x63 | 0x69 | 0x6b | 0x8a => Effect::Write(reg),
        0x50..=0x57 => Effect::Push(Some(numbered)),
        0x58..=0x5f => Effect::Pop(numbered),
        0x68 | 0x6a | 0x9c => Effect::Push(None),
        0x9d => Effect::Pop(u8::MAX),
        0x70..=0x7f | 0xe0..=0xe3 => Effect::Branch(distance),
        0x81 | 0x83 if register == Some(SP) && is_wide => match reg & 7 {
            0 => Effect::Down(immediate.checked_neg()?),
            5 => Effect::Down(immediate),
            7 => Effect::None,
            _ => written,
        },
        0x80..=0x83 if reg & 7 == 7 => Effect::None,
        0x86 | 0x87 => return exchange(reg, register),
        0x89 | 0x8b | 0x8d if is_wide => move_of(opcode.opcode, operand?)?,
        0x8b | 0x8d => Effect::Write(reg),
        // pop to memory or to a register
        0x8f => Effect::Pop(register.unwrap_or(u8::MAX)),
        0x90 if opcode.rex & 1 == 0 => Effect::None,
        0x90..=0x97 => return exchange(0, Some(numbered)),
        0xb0..=0xbf => Effect::Write(numbered),
        0xc2 | 0xc3 => Effect::Return,
        0xc8 => Effect::Write(SP),
        0xc9 => Effect::Leave,
        0xe8 => Effect::Call(Some(distance)),
        0xe9 | 0xeb => Effect::Jump(distance),
        0xca | 0xcb | 0xcc | 0xcd | 0xcf | 0xf1 | 0xf4 => Effect::End,
        0xf6 | 0xf7 if !matches!(reg & 7, 2 | 3) => Effect::None,
        0xff => match reg & 7 {
            2 | 3 => Effect::Call(None),
            4 | 5 => Effect::End,
            6 => Effect::Push(register),
            _ => written,
        },
        0xd8..=0xdf => Effect::None,
        _ => written,
    })
}

/// mov of 64 bits, and lea.
fn move_of(opcode: u8, Operand { reg, register, memory }: Operand) -> Option<Effect> {
    Some(match (opcode, register, memory) {
        (0x89, Some(to), _) => Effect::Copy { to, from: reg, plus: 0 },
        (0x89, _, Some((base, offset))) => Effect::Store { from: reg, base, offset },
        (0x89, ..) => Effect::None,
        (0x8b, Some(from), _) => Effect::Copy { to: reg, from, plus: 0 },
        (0x8b, _, Some((base, offset))) => Effect::Load { to: reg, base, offset },
        (0x8d, _, Some((SP, offset))) if reg == SP => Effect::Down(offset.checked_neg()?),
        (0x8d, _, Some((from, plus))) => Effect::Copy { to: reg, from, plus },
        _ => Effect::Write(reg),
    })
}

/// Two registers may be written: the scan knows of one, and needs neither to be sp or fp.
fn exchange(reg: Register, register: Option<Register>) -> Option<Effect> {
    let Some(other) = register else { return Some(Effect::Write(reg)) };
    let matters = |register| matches!(register, SP | FP);
    if matters(reg) || matters(other) { None } else { Some(Effect::Write(reg)) }
}

fn effect_behind_0f(opcode: &Opcode, operand: Option<Operand>, immediate: i64) -> Effect {
    let Some(Operand { reg, register, .. }) = operand else {
        return match opcode.opcode {
            0x80..=0x8f => Effect::Branch(i32::try_from(immediate).unwrap_or(0)),
            0x0b => Effect::End,
            0xa0 | 0xa8 => Effect::Push(None),
            0xa1 | 0xa9 => Effect::Pop(u8::MAX),
            0xc8..=0xcf => Effect::Write(opcode.opcode & 7 | (opcode.rex & 1) << 3),
            _ => Effect::None,
        };
    };
    match (opcode.map, opcode.opcode) {
        (1, 0x40..=0x4f | 0xaf | 0xb6..=0xb8 | 0xbc..=0xbf) => Effect::Write(reg),
        (1, 0x90..=0x9f) => register.map_or(Effect::None, Effect::Write),
        _ => Effect::None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_have_the_lengths_and_effects_that_objdump_shows() {
        let copy = |to, from, plus| Effect::Copy { to, from, plus };
        let cases: [(&[u8], Effect); 46] = [
            (&[0xf3, 0x0f, 0x1e, 0xfa], Effect::None),                  // endbr64
            (&[0x55], Effect::Push(Some(FP))),                          // push %rbp
            (&[0x41, 0x57], Effect::Push(Some(15))),                    // push %r15
            (&[0x6a, 1], Effect::Push(None)),                           // push $1
            (&[0xff, 0x70, 0xf8], Effect::Push(None)),                  // push -8(%rax)
            (&[0x5b], Effect::Pop(3)),                                  // pop %rbx
            (&[0x41, 0x5c], Effect::Pop(12)),                           // pop %r12
            (&[0x5c], Effect::Pop(SP)),                                 // pop %rsp
            (&[0x48, 0x83, 0xec, 0x68], Effect::Down(0x68)),            // sub $0x68,%rsp
            (&[0x48, 0x83, 0xc4, 0x80], Effect::Down(128)),             // add $-128,%rsp
            (&[0x48, 0x81, 0xec, 0x10, 1, 0, 0], Effect::Down(0x110)),  // sub $0x110,%rsp
            (&[0x48, 0x81, 0xc4, 0x10, 1, 0, 0], Effect::Down(-0x110)), // add $0x110,%rsp
            (&[0x48, 0x8d, 0x64, 0x24, 0xf0], Effect::Down(16)),        // lea -16(%rsp),%rsp
            (&[0x49, 0x83, 0xec, 0x08], Effect::Write(12)),             // sub $8,%r12
            (&[0x48, 0x83, 0xe4, 0xe0], Effect::Write(SP)),             // and $-32,%rsp
            (&[0x48, 0xc7, 0xc4, 0, 0, 0, 0], Effect::Write(SP)),       // mov $0,%rsp
            (&[0xe8, 1, 2, 3, 4], Effect::Call(Some(0x0403_0201))),     // call
            (&[0xff, 0x15, 1, 2, 3, 4], Effect::Call(None)),            // call *0x4030201(%rip)
            (&[0x41, 0xff, 0x54, 0x24, 8], Effect::Call(None)),         // call *8(%r12)
            (&[0xff, 0xd0], Effect::Call(None)),                        // call *%rax
            (&[0xc3], Effect::Return),                                  // ret
            (&[0xf3, 0xc3], Effect::Return),                            // repz ret
            (&[0xc9], Effect::Leave),                                   // leave
            (&[0x74, 0x01], Effect::Branch(1)),                         // je
            (&[0x0f, 0x84, 0xff, 0xff, 0xff, 0xff], Effect::Branch(-1)), // je
            (&[0xeb, 0x80], Effect::Jump(-128)),                        // jmp
            (&[0xff, 0xe0], Effect::End),                               // jmp *%rax
            (&[0x0f, 0x0b], Effect::End),                               // ud2
            (&[0x48, 0x89, 0xe5], copy(FP, SP, 0)),                     // mov %rsp,%rbp
            (&[0x48, 0x8b, 0xec], copy(FP, SP, 0)),                     // the same, the other way
            (&[0x48, 0x8d, 0x4c, 0x24, 8], copy(1, SP, 8)),             // lea 8(%rsp),%rcx
            (&[0x4d, 0x89, 0xd3], copy(11, 10, 0)),                     // mov %r10,%r11
            (&[0x48, 0x89, 0x55, 0x80], Effect::Store { from: 2, base: FP, offset: -128 }), // mov %rdx,-0x80(%rbp)
            (&[0x48, 0x8b, 0x24, 0x24], Effect::Load { to: SP, base: SP, offset: 0 }),      // mov (%rsp),%rsp
            (&[0x64, 0x48, 0x8b, 0x04, 0x25, 0x28, 0, 0, 0], Effect::Write(0)), // mov %fs:0x28,%rax
            (&[0xbe, 1, 0, 0, 0], Effect::Write(6)),                            // mov $1,%esi
            (&[0x41, 0xbc, 1, 0, 0, 0], Effect::Write(12)),                     // mov $1,%r12d
            (&[0x45, 0x31, 0xc0], Effect::Write(8)),                            // xor %r8d,%r8d
            (&[0x48, 0x63, 0xd7], Effect::Write(2)),                            // movslq %edi,%rdx
            (&[0xc7, 0x44, 0x24, 0x0c, 1, 0, 0, 0], Effect::None),              // movl $1,0xc(%rsp)
            (&[0x48, 0x85, 0xf6], Effect::None),                                // test %rsi,%rsi
            (&[0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0], Effect::None),                 // nopl 0(%rax,%rax,1)
            (&[0x8b, 0x04, 0xdd, 0x10, 0, 0, 0], Effect::Write(0)),             // mov 0x10(,%rbx,8),%eax
            (&[0x66, 0x0f, 0xef, 0xc0], Effect::None),                          // pxor %xmm0,%xmm0
            (&[0xc4, 0xe3, 0x7d, 0x39, 0xc4, 0x01], Effect::None),              // vextracti128 $1,%ymm0,%xmm4
            (&[0x62, 0xf1, 0x7c, 0x48, 0x10, 0x47, 0x01], Effect::None),        // vmovups 0x40(%rdi),%zmm0
        ];
        for (code, effect) in cases {
            let expected = Some(Instruction { length: code.len(), effect });
            assert_eq!(decode(code), expected, "{code:x?}");
            for length in 0..code.len() {
                assert_eq!(decode(&code[..length]), None, "{code:x?} cut to {length}");
            }
        }
    }

    #[test]
    fn any_bytes_are_an_answer() {
        let mut state = 1u64;
        for _ in 0..1_000_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let bytes = state.to_be_bytes();
            let length = decode(&bytes).map_or(1, |instruction| instruction.length);
            assert!((1..=bytes.len()).contains(&length));
        }
    }
}
