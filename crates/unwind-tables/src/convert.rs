//! What rule a state of the call frame machine is: one of the packed kinds for
//! nearly all code, an extended rule with its expressions for the rest. Extended
//! rules and expressions are kept once each.

use super::cfi_machine::{Bytes, Cfa, State, Value};
use gimli::Register;
use std::collections::HashMap;
use swipr_unwind::rule::{CfaRule, Expression, Extended, Rule, ValueRule};

/// The link register of aarch64.
const AARCH64_LR: Register = Register(30);

/// Converts states; collects what does not fit a packed rule.
pub(crate) struct Converter<'a> {
    section: &'a [u8],
    aarch64: bool,
    /// The function is marked as a signal frame.
    pub(crate) is_marked: bool,
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
            is_marked: false,
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
        if self.is_marked && self.aarch64 {
            return Rule::SIGNAL;
        }
        let Some(full) = self.full(state) else {
            // A rule has no room for such a register. An outermost frame needs none.
            let is_outermost = match state.return_address {
                Value::Undefined => true,
                Value::Unspecified | Value::Same => !self.aarch64,
                _ => false,
            };
            return if is_outermost { Rule::END } else { Rule::NONE };
        };
        let full = if self.is_marked { full.of_marked() } else { Some(full) };
        let Some(full) = full else { return Rule::SIGNAL };
        let packed = Rule::packed(&full, &self.expressions, self.aarch64);
        packed.or_else(|| self.extended(full)).unwrap_or(Rule::NONE)
    }

    #[inline]
    fn full(&mut self, state: &State) -> Option<Extended> {
        let cfa = match state.cfa {
            Cfa::Register(register, offset) => CfaRule::Register(number(register)?, offset),
            Cfa::Expression(bytes) => CfaRule::Expression(self.expression(bytes)?),
        };
        let fp = self.value(state.fp)?;
        let return_address = match self.value(state.return_address)? {
            // "Unchanged" means the link register, wherever that is not the usual one.
            ValueRule::Same if self.aarch64 && state.return_register != AARCH64_LR => {
                ValueRule::Register(number(state.return_register)?)
            }
            value => value,
        };
        let sp = match self.value(state.sp)? {
            ValueRule::Same => ValueRule::Cfa(0),
            value => value,
        };
        Some(Extended { cfa, fp, return_address, sp })
    }

    fn extended(&mut self, extended: Extended) -> Option<Rule> {
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

    #[inline]
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

fn number(register: Register) -> Option<u8> {
    u8::try_from(register.0).ok()
}
