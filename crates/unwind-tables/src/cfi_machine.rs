//! Runs call frame instructions (DWARF 5, section 6.4.2) and keeps the four
//! things that a walk needs: the CFA, the frame pointer, the return address and the stack pointer.
//! gimli decodes the instructions; its own rows track every register, which
//! costs several times as much. What a state means as a rule is not known here.

use super::descriptions::{Description, ReadCie, Slice};
use gimli::CallFrameInstruction as Instruction;
use gimli::{BaseAddresses, Register, UnwindSection};
use std::ops::Range;

/// DWARF numbers of the psABI documents: rbp.
pub(crate) const X86_64_FP: Register = Register(6);
/// rsp.
pub(crate) const X86_64_SP: Register = Register(7);
/// x29.
pub(crate) const AARCH64_FP: Register = Register(29);
/// sp.
pub(crate) const AARCH64_SP: Register = Register(31);

/// Nested `remember_state` up to which instructions are believed.
pub(super) const MAX_REMEMBERED: usize = 64;

/// Bytes of an expression, as a range of the section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bytes {
    offset: usize,
    length: usize,
}

impl Bytes {
    /// As a range of the section's bytes.
    pub(crate) fn range(self) -> Range<usize> {
        self.offset..self.offset.saturating_add(self.length)
    }
}

impl From<gimli::UnwindExpression<usize>> for Bytes {
    fn from(expression: gimli::UnwindExpression<usize>) -> Bytes {
        Bytes { offset: expression.offset, length: expression.length }
    }
}

/// Where the CFA is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cfa {
    /// Register plus offset.
    Register(Register, i64),
    /// The value of an expression.
    Expression(Bytes),
}

/// Where a register of the caller is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    /// No instruction has named it.
    Unspecified,
    /// Explicitly lost.
    Undefined,
    /// Explicitly unchanged.
    Same,
    /// In memory at CFA + offset.
    AtCfa(i64),
    /// CFA + offset.
    Cfa(i64),
    /// In another register.
    Register(Register),
    /// In memory where an expression says.
    At(Bytes),
    /// What an expression says.
    Is(Bytes),
}

/// What holds from one pc on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct State {
    /// The CFA; register 0 plus 0 until an instruction sets it.
    pub(crate) cfa: Cfa,
    /// The caller's frame pointer.
    pub(crate) fp: Value,
    /// The caller's pc.
    pub(crate) return_address: Value,
    /// The caller's stack pointer.
    pub(crate) sp: Value,
    /// The register that return addresses are in, by the common entry.
    pub(crate) return_register: Register,
}

/// Runs one description after the other, keeping its allocation.
pub(crate) struct Machine {
    fp: Register,
    sp: Register,
    state: State,
    initial: State,
    remembered: Vec<State>,
}

/// Why a description's instructions are not followed further.
struct Broken;

impl Machine {
    /// A machine for the architecture.
    pub(crate) fn new(aarch64: bool) -> Machine {
        let (fp, sp) = if aarch64 { (AARCH64_FP, AARCH64_SP) } else { (X86_64_FP, X86_64_SP) };
        let state = blank(Register(0));
        Machine { fp, sp, state, initial: state, remembered: Vec::new() }
    }

    /// Calls `row` with each pc and the state that holds from it on (`None`:
    /// nothing is known), in order, until it returns false.
    pub(crate) fn run<'a>(
        &mut self,
        description: &Description<'a>,
        section: &impl UnwindSection<Slice<'a>>,
        bases: &BaseAddresses,
        mut row: impl FnMut(u64, Option<&State>) -> bool,
    ) {
        let common = description.cie();
        self.state = blank(common.return_address_register());
        self.initial = self.state;
        self.remembered.clear();
        let mut pc = description.initial_address();
        let factors = (common.code_alignment_factor(), common.data_alignment_factor());
        // What is common to many functions is at no address: advances there move nothing.
        let outcome = self.follow(common.instructions(section, bases), factors, &mut 0, &mut |_, _| true);
        let outcome = outcome.and_then(|()| {
            self.initial = self.state;
            self.follow(description.instructions(section, bases), factors, &mut pc, &mut row)
        });
        row(pc, outcome.is_ok().then_some(&self.state));
    }

    /// What holds at the beginning of each function, by what descriptions have in common.
    pub(super) fn initial<'a>(
        &mut self,
        common: &ReadCie<'a>,
        section: &impl UnwindSection<Slice<'a>>,
        bases: &BaseAddresses,
    ) -> Option<State> {
        self.state = blank(common.return_address_register());
        self.initial = self.state;
        self.remembered.clear();
        let factors = (common.code_alignment_factor(), common.data_alignment_factor());
        let mut moved = false;
        let instructions = common.instructions(section, bases);
        let outcome = self.follow(instructions, factors, &mut 0, &mut |_, _| {
            moved = true;
            false
        });
        (outcome.is_ok() && !moved && self.remembered.is_empty()).then_some(self.state)
    }

    fn follow(
        &mut self,
        mut instructions: gimli::CallFrameInstructionIter<'_, Slice<'_>>,
        factors: (u64, i64),
        pc: &mut u64,
        row: &mut impl FnMut(u64, Option<&State>) -> bool,
    ) -> Result<(), Broken> {
        loop {
            let next = match instructions.next() {
                Ok(Some(Instruction::AdvanceLoc { delta })) => {
                    pc.checked_add(u64::from(delta).wrapping_mul(factors.0)).ok_or(Broken)?
                }
                Ok(Some(Instruction::SetLoc { address })) if address >= *pc => address,
                Ok(Some(instruction)) => {
                    self.step(instruction, factors.1)?;
                    continue;
                }
                Ok(None) => return Ok(()),
                Err(_) => return Err(Broken),
            };
            if next != *pc {
                if !row(*pc, Some(&self.state)) {
                    return Ok(());
                }
                *pc = next;
            }
        }
    }

    #[inline]
    fn step(&mut self, instruction: Instruction<usize>, factor: i64) -> Result<(), Broken> {
        let signed = |factored: u64| (factored as i64).wrapping_mul(factor);
        match instruction {
            Instruction::DefCfa { register, offset } => {
                self.state.cfa = Cfa::Register(register, offset as i64)
            }
            Instruction::DefCfaSf { register, factored_offset } => {
                self.state.cfa = Cfa::Register(register, factored_offset.wrapping_mul(factor));
            }
            Instruction::DefCfaRegister { register } => {
                self.state.cfa = Cfa::Register(register, self.cfa_offset()?);
            }
            Instruction::DefCfaOffset { offset } => {
                self.state.cfa = Cfa::Register(self.cfa_register()?, offset as i64);
            }
            Instruction::DefCfaOffsetSf { factored_offset } => {
                self.state.cfa = Cfa::Register(self.cfa_register()?, factored_offset.wrapping_mul(factor));
            }
            Instruction::DefCfaExpression { expression } => {
                self.state.cfa = Cfa::Expression(expression.into())
            }
            Instruction::Undefined { register } => self.set(register, Value::Undefined),
            Instruction::SameValue { register } => self.set(register, Value::Same),
            Instruction::Offset { register, factored_offset } => {
                self.set(register, Value::AtCfa(signed(factored_offset)));
            }
            Instruction::OffsetExtendedSf { register, factored_offset } => {
                self.set(register, Value::AtCfa(factored_offset.wrapping_mul(factor)));
            }
            Instruction::ValOffset { register, factored_offset } => {
                self.set(register, Value::Cfa(signed(factored_offset)));
            }
            Instruction::ValOffsetSf { register, factored_offset } => {
                self.set(register, Value::Cfa(factored_offset.wrapping_mul(factor)));
            }
            Instruction::Register { dest_register, src_register } => {
                self.set(dest_register, Value::Register(src_register));
            }
            Instruction::Expression { register, expression } => {
                self.set(register, Value::At(expression.into()))
            }
            Instruction::ValExpression { register, expression } => {
                self.set(register, Value::Is(expression.into()));
            }
            Instruction::Restore { register } => {
                let initial = self.initial;
                if register == self.fp {
                    self.state.fp = initial.fp;
                } else if register == self.state.return_register {
                    self.state.return_address = initial.return_address;
                } else if register == self.sp {
                    self.state.sp = initial.sp;
                }
            }
            Instruction::RememberState => {
                if self.remembered.len() == MAX_REMEMBERED {
                    return Err(Broken);
                }
                self.remembered.push(self.state);
            }
            Instruction::RestoreState => self.state = self.remembered.pop().ok_or(Broken)?,
            Instruction::SetLoc { .. } => return Err(Broken),
            // Argument sizes, authentication of return addresses, padding: no
            // register moves.
            _ => {}
        }
        Ok(())
    }

    #[inline]
    fn set(&mut self, register: Register, value: Value) {
        if register == self.fp {
            self.state.fp = value;
        } else if register == self.state.return_register {
            self.state.return_address = value;
        } else if register == self.sp {
            self.state.sp = value;
        }
    }

    fn cfa_register(&self) -> Result<Register, Broken> {
        match self.state.cfa {
            Cfa::Register(register, _) => Ok(register),
            Cfa::Expression(_) => Err(Broken),
        }
    }

    fn cfa_offset(&self) -> Result<i64, Broken> {
        match self.state.cfa {
            Cfa::Register(_, offset) => Ok(offset),
            Cfa::Expression(_) => Err(Broken),
        }
    }
}

fn blank(return_register: Register) -> State {
    State {
        cfa: Cfa::Register(Register(0), 0),
        fp: Value::Unspecified,
        return_address: Value::Unspecified,
        sp: Value::Unspecified,
        return_register,
    }
}
