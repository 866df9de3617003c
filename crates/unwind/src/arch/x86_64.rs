//! x86-64: the System V ABI's register numbers (psABI, "DWARF Register Number
//! Mapping") and Linux' `ucontext` layout (`asm/sigcontext.h`).

use super::Arch;

/// The x86-64 processor.
#[derive(Clone, Copy, Debug)]
pub struct X86_64;

/// `uc_mcontext` begins behind uc_flags, uc_link and uc_stack.
const MCONTEXT: u64 = 40;
/// Index of each DWARF register (0..=16) in `gregs`.
const GREGS: [u8; 17] = [13, 12, 14, 11, 9, 8, 10, 15, 0, 1, 2, 3, 4, 5, 6, 7, 16];

impl Arch for X86_64 {
    const FP: u8 = 6;
    const SP: u8 = 7;
    const RETURN_ADDRESS: u8 = 16;
    const LINK: u8 = 5; // rdi
    const PC: u8 = 16;
    const CALL_PUSHES: bool = true;
    const SIGNAL_CONTEXT: u64 = 0;
    const RED_ZONE: u64 = 128;
    const ADDRESS_MASK: u64 = u64::MAX;
    const PC_SHIFT: u32 = 0;

    #[inline]
    fn context_offset(register: u8) -> Option<u64> {
        GREGS.get(register as usize).map(|&index| MCONTEXT + 8 * u64::from(index))
    }
}

/// See [`super::count_at_most`]; sixteen bytes at a time with SSE2, which every x86-64 has.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(super) fn count_at_most(lows: &[u8], count: usize, low: u8) -> usize {
    use core::arch::x86_64::*;
    let mut found = 0;
    let mut at = 0;
    while at < count {
        let Some(sixteen) = lows.get(at..at + 16) else { return found };
        // SAFETY: `sixteen` is 16 readable bytes; the load needs no alignment.
        let at_most = unsafe {
            let bytes = _mm_loadu_si128(sixteen.as_ptr().cast());
            let wanted = _mm_set1_epi8(low as i8);
            _mm_movemask_epi8(_mm_cmpeq_epi8(_mm_min_epu8(bytes, wanted), bytes)) as u32
        };
        let left = count - at;
        let valid = if left >= 16 { 0xffff } else { (1u32 << left) - 1 };
        found += (at_most & valid).count_ones() as usize;
        if at_most & valid != 0xffff {
            break;
        }
        at += 16;
    }
    found
}

#[cfg(all(test, target_arch = "x86_64", target_os = "linux"))]
mod tests {
    use super::*;
    use core::mem::offset_of;

    #[test]
    fn context_offsets_are_those_of_libc() {
        let gregs = offset_of!(libc::ucontext_t, uc_mcontext) as u64;
        let pairs = [
            (0, libc::REG_RAX),
            (1, libc::REG_RDX),
            (2, libc::REG_RCX),
            (3, libc::REG_RBX),
            (4, libc::REG_RSI),
            (5, libc::REG_RDI),
            (6, libc::REG_RBP),
            (7, libc::REG_RSP),
            (8, libc::REG_R8),
            (12, libc::REG_R12),
            (15, libc::REG_R15),
            (16, libc::REG_RIP),
        ];
        for (dwarf, index) in pairs {
            assert_eq!(X86_64::context_offset(dwarf), Some(gregs + 8 * index as u64), "register {dwarf}");
        }
        assert_eq!(X86_64::context_offset(17), None);
    }
}
