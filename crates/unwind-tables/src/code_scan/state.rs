//! Where the CFA and the caller's frame pointer are before an instruction, from where they are
//! behind it.

use swipr_unwind::rule::{CfaRule, Expression, Extended, Kind, Rule, ValueRule};
use swipr_unwind::x86_code::{Effect, FP, Register, SP};

/// DWARF's numbers of the first eight registers (psABI, figure 3.36). The others have the same.
const DWARF: [u8; 8] = [0, 2, 1, 3, 7, 6, 4, 5];
/// A call is made with sp at a multiple of this; so is the CFA.
const ALIGNMENT: i64 = 16;
const WORD: i64 = 8;

/// Where the CFA is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Base {
    /// A register and so many bytes.
    Register(Register, i64),
    /// The word at sp and `slot` bytes, and so many bytes.
    Slot {
        /// Bytes from sp.
        slot: i64,
        /// Bytes from the word's value.
        plus: i64,
    },
}

/// Where the caller's frame pointer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FramePointer {
    /// In a register; in [`FP`] it was not touched.
    In(Register),
    /// In memory, so many bytes from the CFA.
    AtCfa(i64),
    /// Not known.
    Unknown,
}

/// Both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodeState {
    /// See there.
    pub base: Base,
    /// See there.
    pub fp: FramePointer,
}

impl CodeState {
    /// Before the first instruction of a function, and before `ret`.
    pub const AT_ENTRY: CodeState = CodeState { base: Base::Register(SP, WORD), fp: FramePointer::In(FP) };

    /// Of described code; `None`: its rule is a rarer one.
    pub fn of_rule(rule: Rule) -> Option<CodeState> {
        let register = match rule.kind() {
            Kind::Sp => SP,
            Kind::Fp => FP,
            _ => return None,
        };
        let fp = match rule.fp_offset() {
            0 => FramePointer::In(FP),
            offset => FramePointer::AtCfa(offset),
        };
        Some(CodeState { base: Base::Register(register, rule.cfa_offset() as i64), fp })
    }

    /// What holds before an instruction behind which this holds; `None`: not known.
    pub fn before(self, effect: Effect) -> Option<CodeState> {
        let base = self.base_before(effect)?;
        let place = |register: Register, offset: i64| match base {
            Base::Register(known, plus) if known == register => Some(offset - plus),
            _ => None,
        };
        let loaded = |place: Option<i64>| place.map_or(FramePointer::Unknown, FramePointer::AtCfa);
        let fp = match self.fp {
            FramePointer::In(register) => match effect {
                Effect::Pop(to) if to == register => loaded(place(SP, 0)),
                Effect::Leave if register == FP => loaded(place(FP, 0)),
                Effect::Load { to, base, offset } if to == register => loaded(place(base, offset)),
                Effect::Copy { to, from, plus: 0 } if to == register => FramePointer::In(from),
                Effect::Copy { to, .. } | Effect::Write(to) if to == register => FramePointer::Unknown,
                Effect::Call(_) if !is_kept(register) => FramePointer::Unknown,
                _ => self.fp,
            },
            FramePointer::AtCfa(saved) => match effect {
                Effect::Push(Some(from)) if place(SP, -WORD) == Some(saved) => FramePointer::In(from),
                Effect::Store { from, base, offset } if place(base, offset) == Some(saved) => {
                    FramePointer::In(from)
                }
                // It was saved while another register than sp said where the CFA is.
                Effect::Push(_) | Effect::Down(_) | Effect::Copy { .. } if is_below_sp(base, saved) => {
                    FramePointer::In(FP)
                }
                _ => self.fp,
            },
            FramePointer::Unknown => self.fp,
        };
        Some(CodeState { base, fp })
    }

    fn base_before(self, effect: Effect) -> Option<Base> {
        let (register, plus) = match self.base {
            Base::Slot { slot, plus } => return slot_before(slot, plus, effect),
            Base::Register(register, plus) => (register, plus),
        };
        let is_base = |written| written == register;
        Some(match effect {
            Effect::Push(_) if is_base(SP) => Base::Register(SP, plus - WORD),
            Effect::Pop(to) if is_base(SP) && to != SP => Base::Register(SP, plus + WORD),
            Effect::Pop(to) if is_base(to) => Base::Slot { slot: 0, plus },
            Effect::Down(bytes) if is_base(SP) => Base::Register(SP, plus - bytes),
            Effect::Copy { to, from, plus: more } if is_base(to) => Base::Register(from, plus + more),
            Effect::Load { to, base: SP, offset } if is_base(to) => Base::Slot { slot: offset, plus },
            Effect::Leave if is_base(SP) => Base::Register(FP, plus + WORD),
            Effect::Leave if is_base(FP) => return None,
            Effect::Load { to, .. } | Effect::Write(to) if is_base(to) => return None,
            Effect::Call(_) if is_base(SP) => Some(self.base).filter(|_| plus % ALIGNMENT == 0)?,
            Effect::Call(_) => Some(self.base).filter(|_| is_kept(register))?,
            _ => self.base,
        })
    }

    /// As unwind tables have it; bytes of expressions are added to `expressions`.
    pub fn rule(self, expressions: &mut Vec<u8>) -> Result<Rule, Extended> {
        let fp_offset = match self.fp {
            FramePointer::In(FP) => Some(0),
            FramePointer::AtCfa(offset) => Some(offset),
            _ => None,
        };
        let packed = match self.base {
            Base::Register(SP, plus) => fp_offset.and_then(|offset| Rule::sp(plus, offset)),
            Base::Register(FP, plus) => fp_offset.and_then(|offset| Rule::fp(plus, offset)),
            _ => None,
        };
        let cfa = match self.base {
            Base::Register(register, plus) => CfaRule::Register(dwarf(register), plus),
            Base::Slot { slot, plus } => CfaRule::Expression(push_slot(expressions, slot, plus)),
        };
        let fp = match self.fp {
            FramePointer::In(FP) => ValueRule::Same,
            FramePointer::In(register) => ValueRule::Register(dwarf(register)),
            FramePointer::AtCfa(offset) => ValueRule::AtCfa(offset),
            FramePointer::Unknown => ValueRule::Undefined,
        };
        packed.ok_or(Extended { cfa, fp, return_address: ValueRule::AtCfa(-WORD), sp: ValueRule::Cfa(0) })
    }
}

/// Whether calls keep a register: rbx, rbp and r12 to r15.
fn is_kept(register: Register) -> bool {
    matches!(register, 3 | FP | 12..=15)
}

/// Whether the word so many bytes from the CFA lies below the stack pointer.
fn is_below_sp(base: Base, from_cfa: i64) -> bool {
    matches!(base, Base::Register(SP, plus) if from_cfa < -plus)
}

fn dwarf(register: Register) -> u8 {
    DWARF.get(usize::from(register)).copied().unwrap_or(register)
}

fn slot_before(slot: i64, plus: i64, effect: Effect) -> Option<Base> {
    let at = |slot| Some(Base::Slot { slot, plus }).filter(|_| slot >= 0);
    match effect {
        Effect::Push(Some(register)) if slot == 0 => Some(Base::Register(register, plus)),
        Effect::Store { from, base: SP, offset } if slot == offset => Some(Base::Register(from, plus)),
        Effect::Push(_) => at(slot - WORD),
        Effect::Pop(to) if to != SP => at(slot + WORD),
        Effect::Down(bytes) => at(slot - bytes),
        Effect::Pop(_) | Effect::Leave | Effect::Write(SP) => None,
        Effect::Copy { to: SP, .. } | Effect::Load { to: SP, .. } => None,
        _ => at(slot),
    }
}

/// DW_OP_breg7 slot, DW_OP_deref, DW_OP_consts plus, DW_OP_plus.
fn push_slot(expressions: &mut Vec<u8>, slot: i64, plus: i64) -> Expression {
    let start = expressions.len();
    expressions.push(0x77);
    push_signed(expressions, slot);
    expressions.extend([0x06, 0x11]);
    push_signed(expressions, plus);
    expressions.push(0x22);
    Expression { start: start as u32, length: (expressions.len() - start) as u16 }
}

/// Signed LEB128.
fn push_signed(bytes: &mut Vec<u8>, mut value: i64) {
    loop {
        let low = value as u8 & 0x7f;
        value >>= 7;
        let is_last = value == 0 && low & 0x40 == 0 || value == -1 && low & 0x40 != 0;
        bytes.push(if is_last { low } else { low | 0x80 });
        if is_last {
            return;
        }
    }
}
