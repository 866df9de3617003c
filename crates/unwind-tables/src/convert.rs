//! What rule a state of the call frame machine is: one of the packed kinds for
//! nearly all code, an extended rule with its expressions for the rest. Extended
//! rules and expressions are kept once each.

use super::cfi_machine::{AARCH64_FP, Bytes, Cfa, State, Value, X86_64_FP};
use gimli::Register;
use std::collections::HashMap;
use swipr_unwind::rule::{CfaRule, Expression, Extended, Rule, ValueRule};

/// DWARF numbers of the psABI documents: rsp.
const X86_64_SP: Register = Register(7);
const AARCH64_LR: Register = Register(30);
const AARCH64_SP: Register = Register(31);
/// On x86-64 the call instruction leaves the return address right below the CFA.
const X86_64_RETURN_ADDRESS: i64 = -8;

const OP_DEREF: u8 = 0x06;
const OP_BREG6: u8 = 0x76;
/// `breg7 8; breg16 0; lit15; and;` before, `ge; lit3; shl; plus` after `litN`.
const PLT_HEAD: [u8; 6] = [0x77, 8, 0x80, 0, 0x3f, 0x1a];
const PLT_TAIL: [u8; 4] = [0x2a, 0x33, 0x24, 0x22];
const LIT0: u8 = 0x30;

/// Converts states; collects what does not fit a packed rule.
pub(crate) struct Converter<'a> {
    section: &'a [u8],
    aarch64: bool,
    extended: Vec<Extended>,
    extended_numbers: HashMap<Extended, u32>,
    expressions: Vec<u8>,
    expression_places: HashMap<&'a [u8], Expression>,
}

impl<'a> Converter<'a> {
    /// For states that point into `section`.
    pub(crate) fn new(section: &'a [u8], aarch64: bool) -> Converter<'a> {
        Converter {
            section,
            aarch64,
            extended: Vec::new(),
            extended_numbers: HashMap::new(),
            expressions: Vec::new(),
            expression_places: HashMap::new(),
        }
    }

    /// The states that come next point into another section.
    pub(crate) fn read_from(&mut self, section: &'a [u8]) {
        self.section = section;
    }

    /// The extended rules and the bytes of their expressions.
    pub(crate) fn finish(self) -> (Vec<Extended>, Vec<u8>) {
        (self.extended, self.expressions)
    }

    /// The rule of a state; [`Rule::NONE`] where even an extended rule cannot say it.
    #[inline]
    pub(crate) fn rule(&mut self, state: &State) -> Rule {
        if !self.aarch64 && state.cfa == NO_CFA && state.return_address == Value::Unspecified {
            return Rule::NONE;
        }
        let packed = if self.aarch64 { aarch64(state) } else { self.x86_64(state) };
        packed.or_else(|| self.extended(state)).unwrap_or(Rule::NONE)
    }

    fn x86_64(&self, state: &State) -> Option<Rule> {
        match state.return_address {
            Value::Undefined | Value::Unspecified => return Some(Rule::END),
            Value::AtCfa(X86_64_RETURN_ADDRESS) => {}
            _ => return None,
        }
        match (state.cfa, state.fp) {
            (Cfa::Register(X86_64_SP, offset), fp) => Rule::sp(offset, saved_fp(fp)?),
            (Cfa::Register(X86_64_FP, offset), fp) => Rule::fp(offset, saved_fp(fp)?),
            (Cfa::Expression(cfa), Value::Same | Value::Unspecified) => plt(self.bytes(cfa)?),
            (Cfa::Expression(cfa), Value::At(fp)) if self.bytes(fp)? == [OP_BREG6, 0] => {
                deref(self.bytes(cfa)?)
            }
            _ => None,
        }
    }

    fn extended(&mut self, state: &State) -> Option<Rule> {
        let cfa = match state.cfa {
            Cfa::Register(register, offset) => CfaRule::Register(number(register)?, offset),
            Cfa::Expression(bytes) => CfaRule::Expression(self.expression(bytes)?),
        };
        let fp = self.value(state.fp)?;
        let return_address = match self.value(state.return_address)? {
            // "Unchanged" means the link register, wherever that is not the usual one.
            ValueRule::Same if state.return_register != AARCH64_LR => {
                ValueRule::Register(number(state.return_register)?)
            }
            value => value,
        };
        let extended = Extended { cfa, fp, return_address };
        let index = match self.extended_numbers.get(&extended) {
            Some(&index) => index,
            None => {
                let index = u32::try_from(self.extended.len()).ok()?;
                self.extended.push(extended);
                self.extended_numbers.insert(extended, index);
                index
            }
        };
        Rule::extended(index)
    }

    fn value(&mut self, value: Value) -> Option<ValueRule> {
        Some(match value {
            Value::Unspecified | Value::Same => ValueRule::Same,
            Value::Undefined => ValueRule::Undefined,
            Value::AtCfa(offset) => ValueRule::AtCfa(offset),
            Value::Cfa(offset) => ValueRule::Cfa(offset),
            Value::Register(register) => ValueRule::Register(number(register)?),
            Value::At(bytes) => ValueRule::At(self.expression(bytes)?),
            Value::Is(bytes) => ValueRule::Value(self.expression(bytes)?),
        })
    }

    fn bytes(&self, bytes: Bytes) -> Option<&'a [u8]> {
        self.section.get(bytes.range())
    }

    /// Where a copy of the expression's bytes is.
    pub(crate) fn expression(&mut self, bytes: Bytes) -> Option<Expression> {
        let bytes = self.bytes(bytes)?;
        if let Some(&known) = self.expression_places.get(bytes) {
            return Some(known);
        }
        let start = u32::try_from(self.expressions.len()).ok()?;
        let place = Expression { start, length: u16::try_from(bytes.len()).ok()? };
        self.expressions.extend_from_slice(bytes);
        self.expression_places.insert(bytes, place);
        Some(place)
    }
}

/// The CFA before an instruction sets it. A description without any instruction does not describe
/// frames: LuaJIT registers such ones for its code, only to be called when an exception passes.
const NO_CFA: Cfa = Cfa::Register(Register(0), 0);

/// The packed form of where the frame pointer is: 0 for unchanged.
fn saved_fp(fp: Value) -> Option<i64> {
    match fp {
        Value::Unspecified | Value::Same => Some(0),
        Value::AtCfa(offset) if offset != 0 => Some(offset),
        _ => None,
    }
}

fn aarch64(state: &State) -> Option<Rule> {
    if state.return_address == Value::Undefined {
        return Some(Rule::END);
    }
    let fp = match (state.fp, state.return_address) {
        (Value::AtCfa(fp), Value::AtCfa(lr)) if fp != 0 && fp.checked_add(8) == Some(lr) => fp,
        (Value::Unspecified | Value::Same, Value::Unspecified | Value::Same)
            if state.return_register == AARCH64_LR =>
        {
            0
        }
        _ => return None,
    };
    match state.cfa {
        Cfa::Register(AARCH64_SP, offset) => Rule::sp(offset, fp),
        Cfa::Register(AARCH64_FP, offset) => Rule::fp(offset, fp),
        _ => None,
    }
}

fn number(register: Register) -> Option<u8> {
    u8::try_from(register.0).ok()
}

fn plt(expression: &[u8]) -> Option<Rule> {
    let literal = expression.strip_prefix(&PLT_HEAD)?.strip_suffix(&PLT_TAIL)?;
    match literal {
        [literal] => literal.checked_sub(LIT0).filter(|&n| n < 16).map(Rule::plt),
        _ => None,
    }
}

fn deref(expression: &[u8]) -> Option<Rule> {
    let (&OP_BREG6, [offset @ .., OP_DEREF]) = expression.split_first()? else {
        return None;
    };
    let mut reader = gimli::EndianSlice::new(offset, gimli::LittleEndian);
    let offset = gimli::Reader::read_sleb128(&mut reader).ok()?;
    if reader.is_empty() { Rule::deref(offset) } else { None }
}
