//! Call frame information that JIT compilers register by `__register_frame` and related calls. This
//! only notes where it is; the sampler reads it.
//!
//! Constraint: any thread may register at any time: before the constructor, in the child of a fork,
//! with locks of its own held. So this is a table of fixed size, changed by compare-and-swap only,
//! without locks and allocations. A registration that finds no place is counted. A thread that a
//! fork cuts off in between leaves one place taken and nothing else.
//!
//! Orderings: an address is stored with Release after its serial number and before the generation
//! is raised. So a thread that sees a generation (Acquire) sees all that was noted before it.

use std::sync::atomic::{AtomicU64, Ordering::*};

/// Registrations that are noted at the same time.
const PLACES: usize = 4096;
/// So many of them may have an address, from one on that depends on it: programs that register and
/// forget code all the time, also more than there are places, do not wait for a search of all.
const PLACES_OF_ONE: usize = 256;
const FREE: u64 = 0;
/// Being written; no section begins there.
const TAKEN: u64 = 1;

struct FramePlace {
    address: AtomicU64,
    serial: AtomicU64,
}

impl FramePlace {
    /// Most are not `from`: to look first leaves their memory in the other processors' caches, too.
    fn becomes(&self, from: u64, to: u64) -> bool {
        self.address.load(Relaxed) == from && self.address.compare_exchange(from, to, AcqRel, Relaxed).is_ok()
    }
}

static REGISTERED: [FramePlace; PLACES] =
    [const { FramePlace { address: AtomicU64::new(FREE), serial: AtomicU64::new(0) } }; PLACES];
static GENERATION: AtomicU64 = AtomicU64::new(0);
static NOT_NOTED: AtomicU64 = AtomicU64::new(0);

/// One registration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Registration {
    /// Where the information begins.
    pub address: u64,
    /// Distinguishes it from an earlier one at the same address.
    pub serial: u64,
}

/// Records that frame information at `address` holds from now on.
pub fn record(address: u64) {
    if address <= TAKEN {
        return;
    }
    match places_of(address).find(|place| place.becomes(FREE, TAKEN)) {
        Some(place) => {
            place.serial.store(GENERATION.fetch_add(1, AcqRel).wrapping_add(1), Relaxed);
            place.address.store(address, Release);
            GENERATION.fetch_add(1, Release);
        }
        None => _ = NOT_NOTED.fetch_add(1, Relaxed),
    }
}

/// Notes that the frame information at `address` holds no longer.
pub fn forget(address: u64) {
    if address <= TAKEN {
        return;
    }
    if places_of(address).any(|place| place.becomes(address, FREE)) {
        GENERATION.fetch_add(1, Release);
    }
}

fn places_of(address: u64) -> impl Iterator<Item = &'static FramePlace> {
    // The multiplier of Knuth's hash: its upper bits depend on all bits below.
    let first = (address.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize;
    (0..PLACES_OF_ONE).filter_map(move |n| REGISTERED.get((first + n) % PLACES))
}

/// Another number after every change.
pub fn generation() -> u64 {
    GENERATION.load(Acquire)
}

/// Registrations that found no place.
pub fn dropped() -> u64 {
    NOT_NOTED.load(Relaxed)
}

/// What is registered now.
pub fn list() -> impl Iterator<Item = Registration> {
    REGISTERED.iter().filter_map(|place| {
        let address = place.address.load(Acquire);
        let registration = Registration { address, serial: place.serial.load(Acquire) };
        // Again: the place may have become another's in between.
        (address > TAKEN && place.address.load(Acquire) == address).then_some(registration)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn serials(address: u64) -> Vec<u64> {
        list().filter(|found| found.address == address).map(|found| found.serial).collect()
    }

    #[test]
    fn what_is_registered_twice_is_forgotten_twice() {
        let before = generation();
        record(0x7000);
        let first = serials(0x7000);
        assert!(first.len() == 1 && generation() != before);
        record(0x7000);
        assert_eq!(serials(0x7000).len(), 2);
        forget(0x7000);
        forget(0x7000);
        forget(0x7000);
        assert!(serials(0x7000).is_empty());
        record(0x7000);
        assert_ne!(serials(0x7000), first, "another registration at the same place");
        forget(0x7000);
        record(0);
        assert!(serials(0).is_empty());
    }

    #[test]
    fn nearly_all_places_can_be_taken() {
        let addresses = || (1..=3000).map(|n| 0x70_0000_0000 + 0x1230 * n);
        let before = dropped();
        addresses().for_each(record);
        assert!(dropped() - before < 30, "{}", dropped() - before);
        addresses().for_each(forget);
        assert!(list().all(|found| !addresses().any(|address| address == found.address)));
    }

    #[test]
    fn threads_that_register_at_the_same_time_lose_nothing() {
        std::thread::scope(|scope| {
            for thread in 0..4_u64 {
                scope.spawn(move || {
                    for n in 0..500 {
                        record(0x10_0000 * (thread + 1) + 8 * n);
                    }
                    for n in 0..500 {
                        assert_eq!(serials(0x10_0000 * (thread + 1) + 8 * n).len(), 1);
                        forget(0x10_0000 * (thread + 1) + 8 * n);
                    }
                });
            }
        });
        assert!(list().all(|found| !(0x10_0000..0x60_0000).contains(&found.address)));
    }
}
