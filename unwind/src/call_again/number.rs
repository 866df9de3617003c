//! The number of the system call that a thread has just made, which the kernel keeps to itself: by the code in front of it.

/// `syscall`
pub const SYSTEM_CALL: [u8; 2] = [0x0f, 0x05];

/// What the C library's syscall(2) does first: it moves its arguments down by one.
pub const BY_NUMBER: [u8; 25] = [
    0x48, 0x89, 0xf8, // mov %rdi,%rax
    0x48, 0x89, 0xf7, // mov %rsi,%rdi
    0x48, 0x89, 0xd6, // mov %rdx,%rsi
    0x48, 0x89, 0xca, // mov %rcx,%rdx
    0x4d, 0x89, 0xc2, // mov %r8,%r10
    0x4d, 0x89, 0xc8, // mov %r9,%r8
    0x4c, 0x8b, 0x4c, 0x24, 0x08, // mov 8(%rsp),%r9
    0x0f, 0x05, // syscall
];
/// So much code is looked at. The C library's wrappers need less: `mov $NUMBER,%eax`, up to three loads of arguments, and in front of it all the byte
/// that could make it another instruction.
const LONGEST: usize = BY_NUMBER.len();

/// What is known of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Number {
    /// Its number, by its wrapper in the C library.
    Known(u32),
    /// It was made by syscall(2), whose caller gave the number. Where it did is not looked for: what stands in front of the call may belong to another one near by, and a call
    /// that is made again as another may wait for ever.
    Unknown,
}

/// The number of the call whose `syscall` instruction ends at `pc`. `copy` reads memory and returns how many bytes it could read. Apart,
/// which needs less stack.
#[inline(never)]
pub fn number_before(pc: u64, copy: impl Fn(u64, &mut [u8]) -> usize) -> Option<Number> {
    let mut code = [0; LONGEST];
    let start = pc.checked_sub(LONGEST as u64)?;
    if copy(start, &mut code) != LONGEST {
        return None;
    }
    if code == BY_NUMBER { Some(Number::Unknown) } else { number_of_call(&code).map(Number::Known) }
}

/// The number that the C library's wrapper gave the system call at the end of `code`.
fn number_of_call(code: &[u8; LONGEST]) -> Option<u32> {
    let before = code.strip_suffix(&SYSTEM_CALL)?;
    (1..before.len()).rev().find_map(|at| match before.get(at - 1..)? {
        // Behind a prefix REX.B it is r8 that is loaded.
        [prefix, 0xb8, a, b, 0, 0, rest @ ..] if prefix & 0xf1 != 0x41 && is_loads(rest) => {
            Some(u32::from_le_bytes([*a, *b, 0, 0]))
        }
        _ => None,
    })
}

/// Whether the code only loads registers other than rax from the stack: `mov disp8(%rsp),%reg`.
fn is_loads(mut code: &[u8]) -> bool {
    loop {
        code = match code {
            [] => return true,
            [0x44 | 0x4c, 0x8b, modrm, 0x24, _, rest @ ..] if modrm & 0xc7 == 0x44 => rest,
            [0x44 | 0x4c, 0x8b, modrm, 0x24, rest @ ..] if modrm & 0xc7 == 0x04 => rest,
            [0x48, 0x8b, modrm, 0x24, _, rest @ ..] if modrm & 0xc7 == 0x44 && *modrm != 0x44 => rest,
            [0x48, 0x8b, modrm, 0x24, rest @ ..] if modrm & 0xc7 == 0x04 && *modrm != 0x04 => rest,
            [0x8b, modrm, 0x24, _, rest @ ..] if modrm & 0xc7 == 0x44 && *modrm != 0x44 => rest,
            [0x8b, modrm, 0x24, rest @ ..] if modrm & 0xc7 == 0x04 && *modrm != 0x04 => rest,
            _ => return false,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(code: &[u8]) -> Option<Number> {
        let copy = |_, buffer: &mut [u8]| {
            buffer.fill(0x90);
            let start = buffer.len() - code.len();
            buffer[start..].copy_from_slice(code);
            buffer.len()
        };
        number_before(0x1000, copy)
    }

    // As glibc 2.36 has them: without and with arguments that are loaded late.
    const OF_POLL: [u8; 7] = [0xb8, 7, 0, 0, 0, 0x0f, 5];
    const OF_PSELECT: [u8; 16] =
        [0xb8, 0x0e, 1, 0, 0, 0x8b, 0x7c, 0x24, 4, 0x48, 0x8b, 0x74, 0x24, 8, 0x0f, 5];

    #[test]
    fn a_wrapper_has_its_number_and_syscall_has_none() {
        assert_eq!(number(&OF_POLL), Some(Number::Known(7)));
        assert_eq!(number(&OF_PSELECT), Some(Number::Known(270)));
        assert_eq!(number(&BY_NUMBER), Some(Number::Unknown));
    }

    #[test]
    fn what_is_no_call_is_left_alone() {
        assert_eq!(number(&[0x90; 7]), None, "no system call");
        // mov %eax,%ecx in between: not known what it does
        assert_eq!(number(&[0xb8, 7, 0, 0, 0, 0x89, 0xc1, 0x0f, 5]), None);
        // mov 8(%rsp),%eax: another number
        assert_eq!(number(&[0xb8, 7, 0, 0, 0, 0x8b, 0x44, 0x24, 8, 0x0f, 5]), None);
        // mov $7,%r8d
        assert_eq!(number(&[0x41, 0xb8, 7, 0, 0, 0, 0x0f, 5]), None);
    }
}
