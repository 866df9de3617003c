//! The library's own calls go to the C library.
//!
//! The loader binds them to the first function of that name, and the program comes first. A program
//! may have a function `listen` or `send` of its own, with other arguments: the linker exports it
//! because the C library has one. Nobody but the program calls it, as the C library uses internal
//! names. The agent would.

use std::ffi::{CStr, c_int, c_void};
use std::ops::Range;
use swipr_unwind::system_call::mprotect;

/// The C library's objects, by the beginnings of their names, and that of the compiler.
const OF_C_LIBRARY: [&[u8]; 6] =
    [b"libc.so", b"ld-linux", b"libpthread.so", b"libdl.so", b"librt.so", b"libgcc_s.so"];
/// What must stay as it is: memory goes back to where the C library has it from, and the last is no
/// function.
const LEFT_ALONE: [&[u8]; 6] = [b"malloc", b"calloc", b"realloc", b"posix_memalign", b"free", b"environ"];
/// Relocations that are a symbol's address (the psABI's `GLOB_DAT`, `JUMP_SLOT` and `64`).
#[cfg(target_arch = "x86_64")]
const ADDRESSES: [u64; 3] = [6, 7, 1];
#[cfg(target_arch = "aarch64")]
const ADDRESSES: [u64; 3] = [1025, 1026, 257];
/// Entries of the dynamic section (elf(5)): tables of strings and of symbols; relocations, their
/// bytes, and how many of them are of no symbol; those of calls, and their bytes.
const DT_STRTAB: u64 = 5;
const DT_SYMTAB: u64 = 6;
const DT_RELA: u64 = 7;
const DT_RELASZ: u64 = 8;
const DT_RELACOUNT: u64 = 0x6fff_fff9;
const DT_JMPREL: u64 = 23;
const DT_PLTRELSZ: u64 = 2;
const ENTRIES: [u64; 7] = [DT_STRTAB, DT_SYMTAB, DT_RELA, DT_RELASZ, DT_RELACOUNT, DT_JMPREL, DT_PLTRELSZ];
const ADDRESS_ENTRIES: [u64; 4] = [DT_STRTAB, DT_SYMTAB, DT_RELA, DT_JMPREL];
const RELOCATION: u64 = 24;
const SYMBOL: u64 = 24;

/// What the loader says of its objects.
#[derive(Default)]
struct Loaded {
    /// This library's: what was added to its addresses, its dynamic section, and the part that is
    /// read-only after relocation.
    bias: u64,
    dynamic: u64,
    sealed: Range<u64>,
    /// Code of the C library.
    code: [Range<u64>; OF_C_LIBRARY.len()],
    count: usize,
}

unsafe extern "C" fn look(info: *mut libc::dl_phdr_info, _: usize, data: *mut c_void) -> c_int {
    // SAFETY: the loader passes a valid info, whose name and headers are valid meanwhile, and
    // `bind` a valid `Loaded`.
    let (info, loaded) = unsafe { (&*info, &mut *data.cast::<Loaded>()) };
    if info.dlpi_phdr.is_null() || info.dlpi_name.is_null() {
        return 0;
    }
    // SAFETY: as above.
    let (headers, path) = unsafe {
        let headers = std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum));
        (headers, CStr::from_ptr(info.dlpi_name).to_bytes())
    };
    let range = |header: &libc::Elf64_Phdr| {
        let from = info.dlpi_addr.wrapping_add(header.p_vaddr);
        from..from.wrapping_add(header.p_memsz)
    };
    let code =
        headers.iter().find(|header| header.p_type == libc::PT_LOAD && header.p_flags & libc::PF_X != 0);
    let Some(code) = code.map(range) else { return 0 };
    let name = path.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
    if code.contains(&(look as *const () as u64)) {
        loaded.bias = info.dlpi_addr;
        for header in headers {
            match header.p_type {
                libc::PT_DYNAMIC => loaded.dynamic = range(header).start,
                libc::PT_GNU_RELRO => loaded.sealed = range(header),
                _ => {}
            }
        }
    } else if OF_C_LIBRARY.iter().any(|known| name.starts_with(known))
        && let Some(place) = loaded.code.get_mut(loaded.count)
    {
        *place = code;
        loaded.count += 1;
    }
    0
}

/// To be called before any other function of the C library.
pub fn bind() {
    #[cfg(feature = "fault-injection")]
    if !profiler::for_library::injected::binds_imports() {
        return;
    }
    let mut loaded = Loaded::default();
    // SAFETY: `look` has the signature asked for and gets `loaded`.
    unsafe { libc::dl_iterate_phdr(Some(look), (&raw mut loaded).cast()) };
    // The program's own `dlsym` may be any function.
    if loaded.dynamic == 0 || !loaded.is_of_c_library(libc::dlsym as *const () as u64) {
        return;
    }
    // SAFETY: the library's own dynamic section, as the loader has it.
    let [strings, symbols, plain, plain_bytes, relative, calls, call_bytes] =
        unsafe { loaded.dynamic_values() };
    let tables = [plain + relative * RELOCATION..plain + plain_bytes, calls..calls + call_bytes];
    let mut is_open = false;
    for at in tables.into_iter().flat_map(|table| table.step_by(RELOCATION as usize)) {
        // SAFETY: an entry of the library's own table.
        let [offset, info] = unsafe { words(at) };
        let (number, kind, slot) = (info >> 32, info & 0xffff_ffff, loaded.bias.wrapping_add(offset));
        if number == 0 || !ADDRESSES.contains(&kind) {
            continue;
        }
        // SAFETY: a symbol of the library's own table, and where its address was written.
        let ([head], [address]) = unsafe { (words(symbols + number * SYMBOL), words(slot)) };
        let is_import = head >> 48 == 0;
        if !is_import || address == 0 || loaded.is_of_c_library(address) {
            continue;
        }
        // SAFETY: a name in the library's own table of strings.
        let name = unsafe { CStr::from_ptr((strings + (head & 0xffff_ffff)) as *const _) };
        let Some(function) = loaded.in_c_library(name) else { continue };
        is_open = is_open || loaded.protect(libc::PROT_READ | libc::PROT_WRITE);
        if is_open {
            // SAFETY: it can be written now, and no thread of the library is there yet.
            unsafe { (slot as *mut u64).write_volatile(function) };
        }
    }
    if is_open {
        loaded.protect(libc::PROT_READ);
    }
}

impl Loaded {
    /// Of [`ENTRIES`], in their order.
    ///
    /// # Safety
    /// The dynamic section is there.
    unsafe fn dynamic_values(&self) -> [u64; ENTRIES.len()] {
        let mut values = [0; ENTRIES.len()];
        for entry in (self.dynamic..).step_by(16) {
            // SAFETY: it has an end.
            let [tag, value] = unsafe { words(entry) };
            if tag == 0 {
                break;
            }
            let place = ENTRIES.iter().position(|&known| known == tag).and_then(|at| values.get_mut(at));
            if let Some(place) = place {
                // The loader has added the bias already, where it can write.
                let is_added = !ADDRESS_ENTRIES.contains(&tag) || value >= self.bias;
                *place = if is_added { value } else { value + self.bias };
            }
        }
        values
    }

    fn is_of_c_library(&self, address: u64) -> bool {
        self.code.iter().any(|code| code.contains(&address))
    }

    /// Sets how the part that is read-only after relocation can be used; whether that worked.
    fn protect(&self, protection: c_int) -> bool {
        // SAFETY: no preconditions.
        let page = unsafe { libc::getauxval(libc::AT_PAGESZ) }.max(1);
        let (from, to) = (self.sealed.start / page * page, self.sealed.end / page * page);
        // SAFETY: pages of the library's own, which nobody else uses yet.
        from == to || unsafe { mprotect(from, to - from, protection) }
    }

    /// The C library's function of that name. Other libraries may have one, too.
    fn in_c_library(&self, name: &CStr) -> Option<u64> {
        if LEFT_ALONE.contains(&name.to_bytes()) {
            return None;
        }
        let is_its_own = |function: &u64| self.is_of_c_library(*function);
        // SAFETY: a C string; the answer is null or the function's address.
        let next = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) } as u64;
        Some(next).filter(is_its_own).or_else(|| {
            // SAFETY: a library that is loaded already, and stays so; then as above.
            let found = unsafe {
                let flags = libc::RTLD_LAZY | libc::RTLD_NOLOAD;
                match libc::dlopen(c"libc.so.6".as_ptr(), flags) {
                    library if library.is_null() => 0,
                    library => libc::dlsym(library, name.as_ptr()) as u64,
                }
            };
            Some(found).filter(is_its_own)
        })
    }
}

/// # Safety
/// They are mapped.
unsafe fn words<const COUNT: usize>(address: u64) -> [u64; COUNT] {
    // SAFETY: says the caller.
    unsafe { (address as *const [u64; COUNT]).read_unaligned() }
}
