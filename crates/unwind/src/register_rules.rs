//! Where a frame keeps its caller's value of one register.

/// How a register is saved; see [`Saved`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum RegisterRule {
    /// It still holds the caller's value.
    Same,
    /// The caller's value is lost.
    Undefined,
    /// In memory at CFA + `value`.
    AtCfa,
    /// It is CFA + `value`.
    Cfa,
    /// In the register `value`.
    Register,
    /// In memory where the expression at `value` says; the CFA is pushed first.
    At,
    /// What the expression at `value` says; the CFA is pushed first.
    Value,
}

/// Where the caller's value of a register is. Sixteen bytes: the handler's stack is short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Saved {
    /// How to read `value`.
    pub how: RegisterRule,
    /// Bytes of the expression.
    pub length: u16,
    /// An offset, a register or an address; see [`RegisterRule`].
    pub value: u64,
}

impl Saved {
    /// Unchanged: holds for a register that no instruction mentions.
    pub const SAME: Saved = Saved { how: RegisterRule::Same, length: 0, value: 0 };
}
