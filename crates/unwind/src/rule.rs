//! How one frame is left: where the caller's frame begins and where the
//! callee-saved frame pointer lies. One `u32` a rule, so that a table row needs
//! two bytes (an index into a dictionary of rules) and the pc cache can hold tag
//! and rule in one atomic word.
//!
//! Bits, lowest first: kind 3 | CFA offset in words 14 | saved frame pointer's
//! offset from the CFA in words 14, signed. The 32nd bit is always clear.
//! "CFA" is DWARF's canonical frame address: the stack pointer's value in the
//! caller right before its call instruction.

mod packed;

/// What a rule does; see [`Rule`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Kind {
    /// No unwind information for this code.
    None = 0,
    /// CFA = stack pointer + offset.
    Sp = 1,
    /// CFA = frame pointer + offset.
    Fp = 2,
    /// A PLT stub (x86-64): CFA = sp + 8, and 8 more once the stub has pushed,
    /// which it has when the low four bits of the pc reach the rule's threshold.
    Plt = 3,
    /// A signal frame: the interrupted registers lie in the `ucontext` at sp.
    Signal = 4,
    /// The outermost frame: its return address is undefined.
    End = 5,
    /// A realigned stack: CFA = *(fp + offset), caller's fp = *fp.
    Deref = 6,
    /// Everything else: an index into the table's [`Extended`] rules.
    Extended = 7,
}

/// A packed unwind rule; see the module's text for the layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(transparent)]
pub struct Rule(u32);

const WORD: i64 = 8;
const CFA_WORDS: u32 = 14;
const FIELD: u32 = (1 << CFA_WORDS) - 1;

impl Rule {
    /// No unwind information.
    pub const NONE: Rule = Rule(0);
    /// The outermost frame of a thread.
    pub const END: Rule = Rule(Kind::End as u32);
    /// Between two functions. A return address right behind padding was not left by a call: a stack
    /// was started with it, as with [`Rule::END`]. A thread that runs in it, or returns into it,
    /// runs undescribed code, as with [`Rule::NONE`].
    pub const PADDING: Rule = Rule(Kind::End as u32 | 1 << 3);
    /// The function has left its caller's stack for another one, with a frame pointer to its own
    /// frame, or its caller's, in the register: CFA = fp + 16, on a stack of unknown extent.
    pub const OTHER_STACK: Rule = Rule(Kind::End as u32 | 2 << 3);
    /// A signal frame.
    pub const SIGNAL: Rule = Rule(Kind::Signal as u32);

    const fn pack(kind: Kind, words: u32, fp_words: i32) -> Rule {
        Rule(kind as u32 | (words & FIELD) << 3 | ((fp_words as u32) & FIELD) << 17)
    }

    /// CFA = sp + `cfa` bytes; the caller's frame pointer was saved at
    /// CFA + `fp` bytes (0: it still holds the caller's value).
    /// `None` when a number does not fit: use an [`Extended`] rule then.
    pub const fn sp(cfa: i64, fp: i64) -> Option<Rule> {
        Rule::offsets(Kind::Sp, cfa, fp)
    }

    /// CFA = fp + `cfa` bytes; otherwise as [`Rule::sp`].
    pub const fn fp(cfa: i64, fp: i64) -> Option<Rule> {
        Rule::offsets(Kind::Fp, cfa, fp)
    }

    const fn offsets(kind: Kind, cfa: i64, fp: i64) -> Option<Rule> {
        let (words, fp_words) = (cfa / WORD, fp / WORD);
        let fits = cfa % WORD == 0
            && fp % WORD == 0
            && words >= 0
            && words <= FIELD as i64
            && fp_words >= -8192
            && fp_words <= 8191;
        if fits { Some(Rule::pack(kind, words as u32, fp_words as i32)) } else { None }
    }

    /// A PLT stub that has pushed its index once `pc & 15 >= threshold`.
    pub const fn plt(threshold: u8) -> Rule {
        Rule::pack(Kind::Plt, threshold as u32 & 15, 0)
    }

    /// CFA = *(fp + `offset` bytes), the caller's fp = *fp.
    pub const fn deref(offset: i64) -> Option<Rule> {
        let words = offset / WORD;
        if offset % WORD == 0 && words >= -8192 && words <= 8191 {
            Some(Rule::pack(Kind::Deref, words as u32, 0))
        } else {
            None
        }
    }

    /// The `index`-th extended rule of the table that holds this rule.
    pub const fn extended(index: u32) -> Option<Rule> {
        if index >> 28 == 0 { Some(Rule(Kind::Extended as u32 | index << 3)) } else { None }
    }

    /// From the packed form, as the pc cache keeps it.
    pub(crate) const fn from_bits(bits: u32) -> Rule {
        Rule(bits & 0x7fff_ffff)
    }

    /// The packed form; the highest bit is clear.
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// What this rule does.
    #[inline(always)]
    pub const fn kind(self) -> Kind {
        match self.0 & 7 {
            1 => Kind::Sp,
            2 => Kind::Fp,
            3 => Kind::Plt,
            4 => Kind::Signal,
            5 => Kind::End,
            6 => Kind::Deref,
            7 => Kind::Extended,
            _ => Kind::None,
        }
    }

    /// Bytes from the base register to the CFA ([`Kind::Sp`], [`Kind::Fp`]).
    #[inline(always)]
    pub const fn cfa_offset(self) -> u64 {
        ((self.0 >> 3 & FIELD) as u64) << 3
    }

    /// Bytes from the CFA to the saved frame pointer; 0: not saved.
    #[inline(always)]
    pub const fn fp_offset(self) -> i64 {
        ((self.0 << 1) as i32 >> 18) as i64 * WORD
    }

    /// Bytes from the frame pointer to the word that holds the CFA ([`Kind::Deref`]).
    #[inline(always)]
    pub const fn deref_offset(self) -> i64 {
        ((self.0 << 15) as i32 >> 18) as i64 * WORD
    }

    /// The low pc bits from which on a PLT stub has pushed ([`Kind::Plt`]).
    #[inline(always)]
    pub const fn plt_threshold(self) -> u64 {
        (self.0 >> 3 & 15) as u64
    }

    /// Index into the table's extended rules ([`Kind::Extended`]).
    #[inline(always)]
    pub const fn extended_index(self) -> usize {
        (self.0 >> 3) as usize
    }
}

/// A range of the table's expression bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Expression {
    /// First byte, an index into [`crate::table::Table::expressions`].
    pub start: u32,
    /// Length in bytes.
    pub length: u16,
}

/// Where the CFA is, for frames whose rule does not fit [`Rule`].
/// Registers have DWARF's numbers of the architecture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CfaRule {
    /// A register plus an offset in bytes.
    Register(u8, i64),
    /// The value of a DWARF expression.
    Expression(Expression),
    /// The same, maybe on another stack: the function switches stacks, as OCaml's runtime does, and
    /// is marked as a signal frame for that.
    OtherStack(Expression),
}

/// Where a caller's register is, for frames whose rule does not fit [`Rule`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ValueRule {
    /// Unchanged.
    Same,
    /// Not recoverable. For the return address: the outermost frame.
    Undefined,
    /// In memory at CFA + offset.
    AtCfa(i64),
    /// CFA + offset itself.
    Cfa(i64),
    /// In another register.
    Register(u8),
    /// In memory at the address that a DWARF expression computes (the CFA is
    /// pushed first, as DW_CFA_expression says).
    At(Expression),
    /// The value of a DWARF expression (the CFA is pushed first).
    Value(Expression),
}

/// A rule in full, for the few frames that need it: frames of over 128 KiB,
/// a CFA held in another register, DWARF expressions of hand-written assembly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Extended {
    /// Where the CFA is.
    pub cfa: CfaRule,
    /// The caller's frame pointer.
    pub fp: ValueRule,
    /// The caller's pc.
    pub return_address: ValueRule,
    /// The caller's stack pointer: nearly always the CFA itself.
    pub sp: ValueRule,
}

impl Extended {
    /// The rule of a function that is marked as a signal frame. `None`: it is one of the kernel's,
    /// which has all registers in the `ucontext`, and its CFA, too.
    pub fn of_marked(self) -> Option<Extended> {
        match (self.cfa, self.return_address) {
            (CfaRule::Expression(_), ValueRule::At(_)) => None,
            (CfaRule::Expression(cfa), _) => Some(Extended { cfa: CfaRule::OtherStack(cfa), ..self }),
            _ => Some(self),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_survive_packing() {
        for cfa in [8, 16, 4096, 131_064] {
            for fp in [0, -16, 8, -65_536, 65_528] {
                let rule = Rule::sp(cfa, fp).unwrap();
                assert_eq!(rule.kind(), Kind::Sp);
                assert_eq!(rule.cfa_offset(), cfa as u64);
                assert_eq!(rule.fp_offset(), fp);
                assert_eq!(rule.bits() >> 31, 0);
                assert_eq!(Rule::fp(cfa, fp).unwrap().kind(), Kind::Fp);
            }
        }
        for offset in [-65_536, -8, 0, 8, 65_528] {
            let rule = Rule::deref(offset).unwrap();
            assert_eq!((rule.kind(), rule.deref_offset()), (Kind::Deref, offset));
        }
        assert_eq!(Rule::plt(11).plt_threshold(), 11);
        assert_eq!(Rule::extended(70_000).unwrap().extended_index(), 70_000);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        assert_eq!(Rule::sp(131_072, 0), None);
        assert_eq!(Rule::sp(12, 0), None);
        assert_eq!(Rule::sp(-8, 0), None);
        assert_eq!(Rule::fp(16, -65_544), None);
        assert_eq!(Rule::deref(65_536), None);
    }
}
