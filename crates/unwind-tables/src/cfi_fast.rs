//! The frame descriptions that compilers write for nearly all code, read byte by byte: a table is
//! built in a half to a quarter of the time that gimli's reader of instructions takes. What is not
//! of the usual form is left to that (see [`super::cfi_machine`]), which also has read the common
//! entries.

use super::cfi_machine::{
    AARCH64_FP, AARCH64_SP, Cfa, MAX_REMEMBERED, Machine, State, Value, X86_64_FP, X86_64_SP,
};
use super::descriptions::{Described, Descriptions};
use gimli::Register;
use std::rc::Rc;
use swipr_unwind::dwarf::*;

/// What the descriptions of many functions share.
struct Cie {
    code_factor: u64,
    data_factor: i64,
    has_augmentation: bool,
    initial: State,
}

/// A function's description of the usual form.
pub(super) struct Body<'a> {
    /// Bytes of code.
    pub(super) length: u64,
    instructions: &'a [u8],
    common: Rc<Cie>,
}

/// Reads one description after the other of one section.
pub(super) struct CfiFast<'a> {
    address: u64,
    bytes: &'a [u8],
    fp: u64,
    sp: u64,
    /// The last common entry, by its offset; `None`: it is not of the usual form.
    common: Option<(usize, Option<Rc<Cie>>)>,
    remembered: Vec<State>,
}

impl<'a> CfiFast<'a> {
    /// For the section with these bytes at `address`.
    pub(super) fn new((address, bytes): (u64, &'a [u8]), aarch64: bool) -> CfiFast<'a> {
        let (fp, sp) = if aarch64 { (AARCH64_FP, AARCH64_SP) } else { (X86_64_FP, X86_64_SP) };
        CfiFast { address, bytes, fp: fp.0.into(), sp: sp.0.into(), common: None, remembered: Vec::new() }
    }

    /// The function's description; `None`: of another form, or damaged.
    #[inline]
    pub(super) fn body(
        &mut self,
        function: Described,
        descriptions: &Descriptions<'a>,
        machine: &mut Machine,
    ) -> Option<Body<'a>> {
        let bytes = self.bytes.get(function.offset..)?;
        let (fields, rest) = bytes.split_first_chunk::<16>()?;
        let [length, distance, start, code] = words(fields);
        // 0: the section's end; above: the form for sections beyond 4 GiB
        if !(12..0xffff_fff0).contains(&length) || code == 0 || code > i32::MAX as u32 {
            return None;
        }
        let place = self.address.wrapping_add(function.offset as u64 + 8);
        if place.wrapping_add_signed(i64::from(start as i32)) != function.start {
            return None;
        }
        let common = (function.offset + 4).checked_sub(distance as usize)?;
        let common = self.common(common, descriptions, machine)?;
        let mut instructions = rest.get(..length as usize - 12)?;
        if common.has_augmentation {
            let bytes = uleb(&mut instructions)?;
            instructions = instructions.get(usize::try_from(bytes).ok()?..)?;
        }
        Some(Body { length: u64::from(code), instructions, common })
    }

    #[inline]
    fn common(
        &mut self,
        offset: usize,
        descriptions: &Descriptions<'a>,
        machine: &mut Machine,
    ) -> Option<Rc<Cie>> {
        match &self.common {
            Some((known, common)) if *known == offset => common.clone(),
            _ => {
                let common = Cie::read(offset, descriptions, machine).map(Rc::new);
                self.common = Some((offset, common.clone()));
                common
            }
        }
    }

    /// As [`Machine::run`]; `false`: an instruction is not of the usual ones, and rows from the
    /// last one's pc on were not reported.
    #[inline]
    pub(super) fn run(
        &mut self,
        body: &Body<'a>,
        start: u64,
        row: &mut impl FnMut(u64, Option<&State>) -> bool,
    ) -> bool {
        self.follow(body, start, row).is_some()
    }

    #[inline]
    fn follow(
        &mut self,
        body: &Body<'a>,
        start: u64,
        row: &mut impl FnMut(u64, Option<&State>) -> bool,
    ) -> Option<()> {
        let Cie { code_factor, data_factor, initial, .. } = *body.common;
        let (mut state, mut pc, mut code) = (initial, start, body.instructions);
        self.remembered.clear();
        while let Some((&instruction, rest)) = code.split_first() {
            code = rest;
            let delta = match instruction {
                DW_CFA_ADVANCE_LOC..=DW_CFA_ADVANCE_LOC_LAST => u64::from(instruction & LOW_OPERAND),
                DW_CFA_ADVANCE_LOC1 => u64::from(u8::from_le_bytes(take(&mut code)?)),
                DW_CFA_ADVANCE_LOC2 => u64::from(u16::from_le_bytes(take(&mut code)?)),
                DW_CFA_ADVANCE_LOC4 => u64::from(u32::from_le_bytes(take(&mut code)?)),
                _ => {
                    self.step(instruction, &mut code, &mut state, &initial, data_factor)?;
                    continue;
                }
            };
            let next = pc.checked_add(delta.wrapping_mul(code_factor))?;
            if next != pc {
                if !row(pc, Some(&state)) {
                    return Some(());
                }
                pc = next;
            }
        }
        row(pc, Some(&state));
        Some(())
    }

    #[inline]
    fn set(&self, state: &mut State, register: u64, value: Value) {
        if register == self.fp {
            state.fp = value;
        } else if register == u64::from(state.return_register.0) {
            state.return_address = value;
        } else if register == self.sp {
            state.sp = value;
        }
    }

    #[inline]
    fn step(
        &mut self,
        instruction: u8,
        code: &mut &[u8],
        state: &mut State,
        initial: &State,
        data_factor: i64,
    ) -> Option<()> {
        match instruction {
            DW_CFA_OFFSET..=DW_CFA_OFFSET_LAST => {
                let value = Value::AtCfa((uleb(code)? as i64).wrapping_mul(data_factor));
                self.set(state, u64::from(instruction & LOW_OPERAND), value);
            }
            DW_CFA_RESTORE..=DW_CFA_RESTORE_LAST => {
                let register = u64::from(instruction & LOW_OPERAND);
                if register == self.fp {
                    state.fp = initial.fp;
                } else if register == u64::from(state.return_register.0) {
                    state.return_address = initial.return_address;
                } else if register == self.sp {
                    state.sp = initial.sp;
                }
            }
            // Return addresses are signed from here on (aarch64).
            DW_CFA_NOP | DW_CFA_AARCH64_NEGATE_RA_STATE => {}
            // gimli does not know it.
            DW_CFA_GNU_NEGATIVE_OFFSET_EXTENDED => {
                let (register, offset) = (uleb(code)?, uleb(code)? as i64);
                let value = Value::AtCfa(offset.wrapping_mul(data_factor).wrapping_neg());
                self.set(state, register, value);
            }
            DW_CFA_GNU_ARGS_SIZE => _ = uleb(code)?,
            DW_CFA_REMEMBER_STATE if self.remembered.len() < MAX_REMEMBERED => self.remembered.push(*state),
            DW_CFA_RESTORE_STATE => *state = self.remembered.pop()?,
            DW_CFA_DEF_CFA => {
                let register = register(uleb(code)?)?;
                state.cfa = Cfa::Register(register, uleb(code)? as i64);
            }
            DW_CFA_DEF_CFA_REGISTER => {
                let Cfa::Register(_, offset) = state.cfa else { return None };
                state.cfa = Cfa::Register(register(uleb(code)?)?, offset);
            }
            DW_CFA_DEF_CFA_OFFSET => {
                let Cfa::Register(register, _) = state.cfa else { return None };
                state.cfa = Cfa::Register(register, uleb(code)? as i64);
            }
            _ => return None,
        }
        Some(())
    }
}

impl Cie {
    fn read(offset: usize, descriptions: &Descriptions, machine: &mut Machine) -> Option<Cie> {
        let common = descriptions.common(offset)?;
        let usual = gimli::DwEhPe(DW_EH_PE_PCREL | DW_EH_PE_SDATA4);
        if common.is_signal_trampoline() || common.fde_address_encoding() != Some(usual) {
            return None;
        }
        Some(Cie {
            code_factor: common.code_alignment_factor(),
            data_factor: common.data_alignment_factor(),
            has_augmentation: common.augmentation().is_some(),
            initial: machine.initial(&common, descriptions.section(), descriptions.bases())?,
        })
    }
}

fn register(number: u64) -> Option<Register> {
    u16::try_from(number).ok().map(Register)
}

fn words(bytes: &[u8; 16]) -> [u32; 4] {
    let (words, _) = bytes.as_chunks::<4>();
    std::array::from_fn(|at| words.get(at).map_or(0, |word| u32::from_le_bytes(*word)))
}

#[inline]
fn take<const N: usize>(code: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, rest) = code.split_first_chunk::<N>()?;
    *code = rest;
    Some(*taken)
}

#[inline]
fn uleb(code: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..63).step_by(7) {
        let [byte] = take(code)?;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}
