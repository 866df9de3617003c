//! The loaded objects, from the dynamic loader (dl_iterate_phdr(3)).
//!
//! The loader holds its lock while it calls back. So the callback only copies into memory that was
//! reserved before; if that was too small, the copy is made again. It never waits: where another
//! thread has the lock there is no answer ([`ObjectList`]).

use super::loader_lock::ObjectList;
use super::maps::{self, Mapping};
use std::ffi::{CStr, c_int, c_void};
use std::ops::Range;

/// A loaded object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    /// As the loader names it; empty for the executable.
    pub name: String,
    /// What was added to the addresses in the file.
    pub bias: u64,
    /// The segments, in the order of the program headers.
    pub segments: Vec<Segment>,
}

impl Object {
    /// Where the image begins: the address of its first loaded segment.
    pub fn base(&self) -> u64 {
        let first = self.segments.iter().find(|segment| segment.kind == libc::PT_LOAD);
        first.map_or(self.bias, |segment| segment.address)
    }

    /// Whether all its code is in one of sorted `maps`.
    pub fn code_is_in(&self, maps: &[Mapping]) -> bool {
        let mut code = self.segments.iter().filter(|segment| segment.is_code());
        code.all(|segment| maps::find(maps, segment.address).is_some())
    }
}

/// One program header of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// `p_type` (elf(5)).
    pub kind: u32,
    /// `p_flags`.
    pub flags: u32,
    /// Address in this process.
    pub address: u64,
    /// Bytes in memory.
    pub bytes: u64,
    /// Bytes from the file's start.
    pub offset: u64,
}

impl Segment {
    /// The addresses of this segment.
    pub fn range(&self) -> Range<u64> {
        self.address..self.address.saturating_add(self.bytes)
    }

    /// Whether it is loaded and can be executed.
    pub fn is_code(&self) -> bool {
        self.kind == libc::PT_LOAD && self.flags & libc::PF_X != 0
    }
}

/// How often objects were loaded and unloaded since the process began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    adds: u64,
    subs: u64,
}

impl Changes {
    /// Whether an object was unloaded since `earlier`: another may be where it was.
    pub fn unloads_since(&self, earlier: Changes) -> bool {
        self.subs != earlier.subs
    }
}

/// The loader's counters; `None`: another thread holds its list.
pub fn changes() -> Option<Changes> {
    unsafe extern "C" fn first(info: *mut libc::dl_phdr_info, _: usize, data: *mut c_void) -> c_int {
        // SAFETY: the loader passes a valid info, `changes` passes a valid Changes.
        unsafe { *data.cast::<Changes>() = Changes { adds: (*info).dlpi_adds, subs: (*info).dlpi_subs } };
        1
    }
    let mut changes = Changes::default();
    let _held = ObjectList::try_hold()?;
    // SAFETY: `first` has the signature asked for and gets `changes`.
    unsafe { libc::dl_iterate_phdr(Some(first), (&raw mut changes).cast()) };
    Some(changes)
}

struct Copied {
    objects: Vec<(u64, Range<usize>, Range<usize>)>,
    names: Vec<u8>,
    segments: Vec<Segment>,
    too_small: bool,
}

/// All loaded objects; `None`: as for [`changes`].
pub fn list() -> Option<Vec<Object>> {
    let mut capacity = 256;
    loop {
        let mut copied = Copied {
            objects: Vec::with_capacity(capacity),
            names: Vec::with_capacity(capacity * 128),
            segments: Vec::with_capacity(capacity * 16),
            too_small: false,
        };
        // Not while memory is allocated: the program's malloc may itself want the loader.
        let held = ObjectList::try_hold()?;
        // SAFETY: `copy` has the signature asked for and gets `copied`.
        unsafe { libc::dl_iterate_phdr(Some(copy), (&raw mut copied).cast()) };
        drop(held);
        if !copied.too_small || capacity > 1 << 20 {
            return Some(copied.into_objects());
        }
        capacity *= 4;
    }
}

impl Copied {
    fn into_objects(self) -> Vec<Object> {
        let object = |(bias, name, segments): &(u64, Range<usize>, Range<usize>)| Object {
            name: String::from_utf8_lossy(self.names.get(name.clone()).unwrap_or(&[])).into_owned(),
            bias: *bias,
            segments: self.segments.get(segments.clone()).unwrap_or(&[]).to_vec(),
        };
        self.objects.iter().map(object).collect()
    }

    fn add(&mut self, bias: u64, name: &[u8], headers: &[libc::Elf64_Phdr]) {
        let fits = self.objects.len() < self.objects.capacity()
            && self.names.capacity() - self.names.len() >= name.len()
            && self.segments.capacity() - self.segments.len() >= headers.len();
        if !fits {
            self.too_small = true;
            return;
        }
        let (first_byte, first_segment) = (self.names.len(), self.segments.len());
        self.names.extend_from_slice(name);
        self.segments.extend(headers.iter().map(|header| Segment {
            kind: header.p_type,
            flags: header.p_flags,
            address: bias.wrapping_add(header.p_vaddr),
            bytes: header.p_memsz,
            offset: header.p_offset,
        }));
        self.objects.push((bias, first_byte..self.names.len(), first_segment..self.segments.len()));
    }
}

unsafe extern "C" fn copy(info: *mut libc::dl_phdr_info, _: usize, data: *mut c_void) -> c_int {
    // SAFETY: the loader passes a valid info and `list` a valid `Copied`; names and headers
    // stay valid while the loader's lock is held.
    unsafe {
        let name =
            if (*info).dlpi_name.is_null() { &[] } else { CStr::from_ptr((*info).dlpi_name).to_bytes() };
        let headers = if (*info).dlpi_phdr.is_null() {
            &[]
        } else {
            std::slice::from_raw_parts((*info).dlpi_phdr, usize::from((*info).dlpi_phnum))
        };
        (*data.cast::<Copied>()).add((*info).dlpi_addr, name, headers);
    }
    0
}

/// The address at which the kernel mapped its own object; 0: none.
pub fn vdso_address() -> u64 {
    // SAFETY: no preconditions.
    unsafe { libc::getauxval(libc::AT_SYSINFO_EHDR) }
}

/// Where the program begins: `_start` of the executable (getauxval(3)).
pub fn entry_address() -> u64 {
    // SAFETY: no preconditions.
    unsafe { libc::getauxval(libc::AT_ENTRY) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_executable_comes_first_and_holds_this_function() {
        // Another test may keep it.
        let objects = std::iter::repeat_with(list).take(1_000_000).flatten().next().unwrap();
        let here = the_executable_comes_first_and_holds_this_function as *const () as u64;
        assert!(
            objects[0].segments.iter().any(|segment| segment.is_code() && segment.range().contains(&here))
        );
        assert!(objects.iter().any(|object| object.name.contains("libc.so")));
        assert!(objects.iter().any(|object| {
            object.segments.iter().any(|segment| segment.range().contains(&vdso_address()))
        }));
    }

    #[test]
    fn too_little_room_is_noticed_before_it_is_used() {
        let mut copied = Copied {
            objects: Vec::with_capacity(4),
            names: Vec::new(),
            segments: Vec::new(),
            too_small: false,
        };
        copied.add(0, b"libx.so", &[]);
        assert!(copied.too_small && copied.objects.is_empty() && copied.names.capacity() == 0);
    }
}
