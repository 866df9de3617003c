//! aarch64: the AAPCS64's DWARF register numbers (aadwarf64) and Linux'
//! `ucontext` layout (`asm/ucontext.h`, `asm/sigcontext.h`).

use super::Arch;

/// The aarch64 processor.
#[derive(Clone, Copy, Debug)]
pub struct Aarch64;

/// `uc_mcontext` lies behind uc_flags, uc_link, uc_stack and 128 bytes of signal
/// mask, 16-aligned; its first word is the fault address.
const REGISTERS: u64 = 176 + 8;

impl Arch for Aarch64 {
    const FP: u8 = 29;
    const SP: u8 = 31;
    const RETURN_ADDRESS: u8 = 30;
    const LINK: u8 = 30;
    const PC: u8 = 32; // aadwarf64
    const CALL_PUSHES: bool = false;
    const SIGNAL_CONTEXT: u64 = 128; // behind the siginfo
    const RED_ZONE: u64 = 0;
    const ADDRESS_MASK: u64 = (1 << 48) - 1; // above: pointer authentication codes
    const PC_SHIFT: u32 = 2;

    #[inline]
    fn context_offset(register: u8) -> Option<u64> {
        match register {
            0..=31 => Some(REGISTERS + 8 * register as u64), // x0..x30, sp
            32 => Some(REGISTERS + 8 * 32),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sp_and_pc_follow_the_thirty_one_registers() {
        assert_eq!(Aarch64::context_offset(0), Some(184));
        assert_eq!(Aarch64::context_offset(Aarch64::FP), Some(416));
        assert_eq!(Aarch64::context_offset(Aarch64::SP), Some(432));
        assert_eq!(Aarch64::context_offset(Aarch64::PC), Some(440));
        assert_eq!(Aarch64::context_offset(33), None);
    }
}
