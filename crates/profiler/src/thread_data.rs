//! Where the C library keeps the values of pthread_getspecific(3), a thread's id, and where its
//! stack is: looked for in this thread's own control block, with values that nothing else there
//! has. Nothing is assumed of its structures but that the first keys lie in a row there, and what
//! says where the stack is.

use std::ops::Range;
use std::sync::OnceLock;
use swipr_os::process;
use swipr_unwind::arch;
use swipr_unwind::memory::{guarded_copy, guarded_copy_or_file};

/// Bytes of the control block that are searched, and of each key: a number and the value.
const SEARCHED: usize = 2048;
const OF_KEY: usize = 16;
/// Stacks that the C library has made begin and end with pages.
const PAGE: u64 = 4096;
const NO_FILE: i32 = -1;
/// The value that is looked for: an address that nobody has.
const VALUE: u64 = 0x0000_5157_4950_5231;

/// See [`of_first_key`].
static OF_FIRST_KEY: OnceLock<u64> = OnceLock::new();

/// From a thread's control block to the value of the key 0. `None`: it is not known. To be called
/// early, too: once a program has 32 keys, the values of further ones are elsewhere.
pub fn of_first_key() -> Option<u64> {
    if let Some(&known) = OF_FIRST_KEY.get() {
        return Some(known);
    }
    let found = find_first_key()?;
    Some(*OF_FIRST_KEY.get_or_init(|| found))
}

fn find_first_key() -> Option<u64> {
    let mut key = 0;
    // SAFETY: `key` is written; there is nothing to be called at a thread's end.
    if unsafe { libc::pthread_key_create(&raw mut key, None) } != 0 {
        return None;
    }
    let mut bytes = [0; SEARCHED];
    // SAFETY: the key was made just now; its value is no address that anybody follows.
    let is_set = unsafe { libc::pthread_setspecific(key, VALUE as *const libc::c_void) } == 0;
    let read = guarded_copy(arch::thread_pointer(), &mut bytes);
    // SAFETY: the key was made above, and nobody else has it.
    unsafe {
        libc::pthread_setspecific(key, std::ptr::null());
        libc::pthread_key_delete(key);
    }
    let mut words = bytes.get(..read)?.as_chunks::<8>().0.iter();
    let at = 8 * words.position(|word| u64::from_ne_bytes(*word) == VALUE)?;
    let first = at.checked_sub(OF_KEY * key as usize)?;
    (is_set && words.all(|word| u64::from_ne_bytes(*word) != VALUE)).then_some(first as u64)
}

/// From what pthread_self(3) says of a thread to the kernel's id of it. `None`: it is not known.
pub fn of_tid() -> Option<u64> {
    of_tid_by(NO_FILE)
}

/// The same; `memory_file` as for [`guarded_copy_or_file`].
pub fn of_tid_by(memory_file: i32) -> Option<u64> {
    let mut bytes = [0; SEARCHED];
    // SAFETY: asks for a value that this thread has.
    let read = guarded_copy_or_file(unsafe { libc::pthread_self() }, &mut bytes, memory_file);
    find_tid(bytes.get(..read)?, process::tid())
}

/// Where the id is in these bytes; `None`: in none, or several places. It follows pointers. The
/// second half of a word may be that of an address: of a program at 0x55d4…, the thread 21972 has
/// its id in each.
fn find_tid(bytes: &[u8], tid: u32) -> Option<u64> {
    let mut words = bytes.as_chunks::<8>().0.iter().map(|word| word.first_chunk::<4>());
    let is_tid = |bytes: Option<&[u8; 4]>| bytes.is_some_and(|bytes| u32::from_ne_bytes(*bytes) == tid);
    let at = words.position(is_tid)?;
    (!words.any(is_tid)).then_some(8 * at as u64)
}

/// From there to the lower end of a thread's stack, its length, and that of the guard at its lower
/// end: three words in a row. `None`: it is not known, or this is the first thread.
pub fn of_stack(memory_file: i32) -> Option<u64> {
    let mut bytes = [0; SEARCHED];
    // SAFETY: asks for a value that this thread has.
    let block = unsafe { libc::pthread_self() };
    let read = guarded_copy_or_file(block, &mut bytes, memory_file);
    let words: Vec<u64> =
        bytes.get(..read)?.as_chunks::<8>().0.iter().map(|word| u64::from_ne_bytes(*word)).collect();
    let local = 0;
    let sp = &raw const local as u64;
    let is_it = |words: &[u64]| {
        let &[low, length, guard] = words else { return false };
        let is_whole = words.iter().all(|word| word % PAGE == 0);
        let own = own_stack([low, length, guard], block);
        is_whole && own.is_some_and(|own| own.contains(&sp))
    };
    let mut places = words.windows(3).enumerate().filter(|(_, words)| is_it(words));
    let (at, _) = places.next()?;
    places.next().is_none().then_some(8 * at as u64)
}

/// The stack that a thread has by these words, up to its control block at `block`.
pub fn own_stack([low, length, guard]: [u64; 3], block: u64) -> Option<Range<u64>> {
    let end = low.checked_add(length)?;
    let start = low.checked_add(guard)?;
    (low != 0 && start < block && block < end).then_some(start..block)
}

#[cfg(test)]
mod tests {
    use super::*;
    use swipr_unwind::memory::guarded_words;

    #[test]
    fn the_id_of_each_thread_is_where_it_was_said() {
        let own = || {
            let mut bytes = [0; 4];
            // SAFETY: asks for a value that this thread has.
            guarded_copy(unsafe { libc::pthread_self() } + of_tid().expect("glibc"), &mut bytes);
            assert_eq!(u32::from_ne_bytes(bytes), process::tid());
            of_tid()
        };
        assert_eq!(own(), std::thread::spawn(own).join().unwrap());
    }

    /// Regression: the id was not found in one process of some hundreds.
    #[test]
    fn an_id_that_is_half_of_an_address_is_found() {
        let words = [0x55d4_1234_5678_u64, 21972, 0x55d4_8765_4321];
        let bytes: Vec<u8> = words.into_iter().flat_map(u64::to_ne_bytes).collect();
        assert_eq!(find_tid(&bytes, 21972), Some(8));
    }

    #[test]
    fn the_stack_of_each_thread_is_where_it_was_said() {
        let own = |bytes: u64| {
            let of_thread = move || {
                let at = of_stack(NO_FILE).expect("glibc");
                // SAFETY: asks for a value that this thread has.
                let block = unsafe { libc::pthread_self() };
                let own = own_stack(guarded_words(block + at).unwrap(), block).unwrap();
                let local = 0;
                assert!(own.contains(&(&raw const local as u64)));
                // It may be a larger one of a thread that has ended.
                assert!(own.end - own.start > bytes - 0x10000, "{own:x?}");
                at
            };
            std::thread::Builder::new().stack_size(bytes as usize).spawn(of_thread).unwrap().join().unwrap()
        };
        assert_eq!(own(256 << 10), own(1 << 20));
    }

    #[test]
    fn the_value_of_a_key_is_where_it_was_said_in_each_thread() {
        let mut key = 0;
        // SAFETY: `key` is written.
        assert_eq!(unsafe { libc::pthread_key_create(&raw mut key, None) }, 0);
        let read = move |value: usize| {
            // SAFETY: made above.
            assert_eq!(unsafe { libc::pthread_setspecific(key, value as *const libc::c_void) }, 0);
            let mut bytes = [0; 8];
            guarded_copy(
                arch::thread_pointer() + of_first_key().expect("glibc") + 16 * u64::from(key),
                &mut bytes,
            );
            usize::from_ne_bytes(bytes)
        };
        assert_eq!(read(4711), 4711);
        assert_eq!(std::thread::spawn(move || read(4712)).join().unwrap(), 4712);
    }
}
