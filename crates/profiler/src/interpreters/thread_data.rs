//! Where the C library keeps the values of pthread_getspecific(3), and a thread's id: looked for in
//! this thread's own control block, with values that nothing else there has. Nothing is assumed of
//! its structures but that the first keys lie in a row there.

use swipr_os::process;
use swipr_unwind::arch;
use swipr_unwind::memory::guarded_copy;

/// Bytes of the control block that are searched, and of each key: a number and the value.
const SEARCHED: usize = 2048;
const OF_KEY: usize = 16;
/// The value that is looked for: an address that nobody has.
const VALUE: u64 = 0x0000_5157_4950_5231;

/// From a thread's control block to the value of the key 0. `None`: it is not known.
pub fn of_first_key() -> Option<u64> {
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
    let mut bytes = [0; SEARCHED];
    // SAFETY: asks for a value that this thread has.
    let read = guarded_copy(unsafe { libc::pthread_self() }, &mut bytes);
    let mut numbers = bytes.get(..read)?.as_chunks::<4>().0.iter();
    let is_tid = |bytes: &[u8; 4]| u32::from_ne_bytes(*bytes) == process::tid();
    let at = numbers.position(is_tid)?;
    (!numbers.any(is_tid)).then_some(4 * at as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

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
