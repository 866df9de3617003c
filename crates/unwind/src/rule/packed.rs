//! Which packed rule says the same as a rule in full.

use super::{CfaRule, Expression, Extended, Rule, ValueRule};

/// DWARF numbers of the psABI documents: rbp, rsp; x29, x30, sp.
const X86_64_FP: u8 = 6;
const X86_64_SP: u8 = 7;
const AARCH64_FP: u8 = 29;
const AARCH64_SP: u8 = 31;
/// On x86-64 the call instruction leaves the return address right below the CFA.
const X86_64_RETURN_ADDRESS: i64 = -8;

const SP_IS_CFA: ValueRule = ValueRule::Cfa(0);

const OP_DEREF: u8 = 0x06;
const OP_BREG6: u8 = 0x76;
const LIT0: u8 = 0x30;

/// The CFA before an instruction sets it. A description without any instruction does not describe
/// frames: LuaJIT registers such ones for its code, only to be called when an exception passes.
const NO_CFA: CfaRule = CfaRule::Register(0, 0);

impl Rule {
    /// The packed form of `full`, whose expressions are ranges of `expressions`; `None`: it has
    /// none.
    #[inline]
    pub fn packed(full: &Extended, expressions: &[u8], aarch64: bool) -> Option<Rule> {
        if aarch64 { of_aarch64(full) } else { of_x86_64(full, expressions) }
    }
}

#[inline]
fn of_x86_64(full: &Extended, expressions: &[u8]) -> Option<Rule> {
    match full.return_address {
        ValueRule::Same if full.cfa == NO_CFA => return Some(Rule::NONE),
        ValueRule::Undefined | ValueRule::Same => return Some(Rule::END),
        ValueRule::AtCfa(X86_64_RETURN_ADDRESS) if full.sp == SP_IS_CFA => {}
        _ => return None,
    }
    match (full.cfa, full.fp) {
        (CfaRule::Register(X86_64_SP, offset), fp) => Rule::sp(offset, saved_fp(fp)?),
        (CfaRule::Register(X86_64_FP, offset), fp) => Rule::fp(offset, saved_fp(fp)?),
        (CfaRule::Expression(cfa), ValueRule::Same) => plt(cfa.bytes(expressions)?),
        (CfaRule::Expression(cfa), ValueRule::At(fp)) if fp.bytes(expressions)? == [OP_BREG6, 0] => {
            deref(cfa.bytes(expressions)?)
        }
        _ => None,
    }
}

fn of_aarch64(full: &Extended) -> Option<Rule> {
    if full.return_address == ValueRule::Undefined {
        return Some(Rule::END);
    }
    if full.sp != SP_IS_CFA {
        return None;
    }
    let fp = match (full.fp, full.return_address) {
        (ValueRule::AtCfa(fp), ValueRule::AtCfa(lr)) if fp != 0 && fp.checked_add(8) == Some(lr) => fp,
        (ValueRule::Same, ValueRule::Same) => 0,
        _ => return None,
    };
    match full.cfa {
        CfaRule::Register(AARCH64_SP, offset) => Rule::sp(offset, fp),
        CfaRule::Register(AARCH64_FP, offset) => Rule::fp(offset, fp),
        _ => None,
    }
}

impl Expression {
    fn bytes(self, expressions: &[u8]) -> Option<&[u8]> {
        let start = self.start as usize;
        expressions.get(start..start.checked_add(usize::from(self.length))?)
    }
}

/// The packed form of where the frame pointer is: 0 for unchanged.
#[inline]
fn saved_fp(fp: ValueRule) -> Option<i64> {
    match fp {
        ValueRule::Same => Some(0),
        ValueRule::AtCfa(offset) if offset != 0 => Some(offset),
        _ => None,
    }
}

/// `breg7 8; breg16 0; lit15; and; litN; ge; lit3; shl; plus`
fn plt(expression: &[u8]) -> Option<Rule> {
    let &[0x77, 8, 0x80, 0, 0x3f, 0x1a, literal, 0x2a, 0x33, 0x24, 0x22] = expression else { return None };
    literal.checked_sub(LIT0).filter(|&n| n < 16).map(Rule::plt)
}

/// `breg6 N; deref`
fn deref(expression: &[u8]) -> Option<Rule> {
    let &[OP_BREG6, ref offset @ .., OP_DEREF] = expression else { return None };
    let (mut value, mut shift) = (0u64, 0);
    for (at, &byte) in offset.iter().enumerate() {
        value |= u64::from(byte & 0x7f).checked_shl(shift)?;
        shift += 7;
        if byte & 0x80 == 0 {
            let sign = if byte & 0x40 != 0 { u64::MAX.checked_shl(shift).unwrap_or(0) } else { 0 };
            return if at + 1 == offset.len() { Rule::deref((value | sign) as i64) } else { None };
        }
    }
    None
}
