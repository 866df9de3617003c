//! A stack as it was walked: addresses, not yet names.

use crate::interpreters::Interpreted;
use crate::mappings::{CodeLocation, Mappings, Tables};
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use swipr_unwind::frames::{self, EXACT, Storage};
use swipr_unwind::walk::Stop;

/// Leaf first. Equal when the addresses are and the code was the same.
#[derive(Clone, Debug)]
pub struct RawStack {
    /// Addresses; [`EXACT`] marks those that are no return addresses.
    words: Box<[u64]>,
    /// The frames of an interpreter among them.
    pub interpreted: Interpreted,
    /// Whether frames were left out behind the first [`frames::BEFORE_ELIDED`].
    pub is_cut: bool,
    /// Why the walk ended.
    pub stop: Stop,
    /// What code was where at that time.
    pub mappings: Arc<Mappings>,
    /// There is no stack: what is said instead.
    remark: Option<&'static str>,
}

const NOT_SAMPLED: &str = "[not sampled]";

/// Frames of a signal handler that has been entered: its own, and what it returns to.
const HANDLER_AND_TRAMPOLINE: usize = 2;

/// An address of a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CodeAddress {
    /// The address.
    pub address: u64,
    /// Whether the thread was at this address; else it is a return address.
    pub exact: bool,
}

impl CodeAddress {
    /// An address inside the instruction: a call may be the last instruction of its mapping.
    pub fn inside(self) -> u64 {
        if self.exact { self.address } else { self.address.saturating_sub(1) }
    }
}

impl RawStack {
    /// Of what a walk left in `storage`.
    pub fn new(
        storage: &Storage,
        total: usize,
        stop: Stop,
        mappings: &Arc<Mappings>,
        interpreted: Interpreted,
    ) -> RawStack {
        let kept = total - frames::elided(total);
        let mut words = Vec::with_capacity(kept);
        // libcoro begins its stacks so. What the walk finds behind it are no callers.
        let abort = libc::abort as *const () as u64;
        words.extend(frames::kept(storage, total).take_while(|&word| word != abort));
        let has_begun = words.len() < kept;
        RawStack {
            words: words.into(),
            interpreted,
            is_cut: frames::elided(total) > 0,
            stop: if has_begun { Stop::Root } else { stop },
            mappings: mappings.clone(),
            remark: None,
        }
    }

    /// Of a thread that was hit at the first instruction of a signal handler: the stack without it.
    /// Another signal came together with the agent's, so the kernel had prepared that handler's
    /// call, and the thread ran where it was interrupted. (Of Go programs with C functions this was
    /// 3 to 11 % of the samples.) `is_handler`: whether a handler begins at an address.
    pub fn before_handler(mut self, is_handler: impl Fn(u64) -> bool) -> RawStack {
        let is_entered = matches!(*self.words, [innermost, trampoline, interrupted, ..]
            if innermost & trampoline & interrupted & EXACT != 0 && is_handler(innermost & !EXACT));
        // Frames of V8 are known by their places among the words.
        if is_entered && self.interpreted.frames.is_empty() {
            self.words = self.words.iter().skip(HANDLER_AND_TRAMPOLINE).copied().collect();
        }
        self
    }

    /// For time of which there is no stack.
    pub fn none() -> RawStack {
        RawStack::not_sampled(NOT_SAMPLED)
    }

    /// Whether it is [`RawStack::none`].
    pub fn is_not_sampled(&self) -> bool {
        self.remark == Some(NOT_SAMPLED)
    }

    /// Whether its mappings lack the code that ran, or code on the way to the root: they are older.
    /// Notes undescribed code: the walk has guessed there, or ended.
    pub fn is_in_unknown_code(&self, tables: &Tables) -> bool {
        for (address, inside) in self.addresses().map(|at| (at.address, at.inside())) {
            if tables.is_undescribed(inside)
                && self.mappings.find(inside).is_some_and(|code| code.symbols.is_some())
            {
                tables.record_undescribed(CodeLocation { address, inside });
            }
        }
        let innermost = self.addresses().next();
        self.stop == Stop::NoTable || innermost.is_some_and(|at| self.mappings.find(at.inside()).is_none())
    }

    /// For the CPU time of a thread that runs in step with the kernel's tick.
    pub fn in_step() -> RawStack {
        RawStack::not_sampled("[not sampled: in step with the kernel's tick]")
    }

    /// For the CPU time of a thread on whose CPU the sampler may not run, or that it may not signal
    /// (`sampler/preempt.rs`).
    pub fn not_preempted() -> RawStack {
        RawStack::not_sampled("[not sampled: it cannot be preempted]")
    }

    /// For CPU time in the kernel, where timers count user time (`timer_delivery`).
    pub fn in_kernel() -> RawStack {
        RawStack::not_sampled("[not sampled: in the kernel]")
    }

    /// For the waits of a thread of which the kernel does not say where it is blocked.
    pub fn hidden() -> RawStack {
        RawStack::not_sampled("[not sampled: the kernel does not say where it waits]")
    }

    /// For a thread that waits for its first CPU: it has no frame yet.
    pub fn not_begun() -> RawStack {
        RawStack::not_sampled("[not begun]")
    }

    fn not_sampled(remark: &'static str) -> RawStack {
        RawStack {
            words: Box::default(),
            interpreted: Interpreted::default(),
            is_cut: false,
            stop: Stop::Root,
            mappings: Arc::default(),
            remark: Some(remark),
        }
    }

    /// The text that is shown if there is no stack.
    pub fn remark(&self) -> Option<&'static str> {
        self.remark
    }

    /// Whether there is no stack.
    pub fn is_none(&self) -> bool {
        self.remark.is_some()
    }

    /// The kept frames, leaf first.
    pub fn addresses(&self) -> impl Iterator<Item = CodeAddress> + '_ {
        self.words.iter().map(|&word| CodeAddress { address: word & !EXACT, exact: word & EXACT != 0 })
    }

    /// Memory that this takes.
    pub fn bytes(&self) -> usize {
        size_of::<RawStack>() + size_of_val(&*self.words) + size_of_val(&*self.interpreted.frames)
    }
}

impl PartialEq for RawStack {
    fn eq(&self, other: &RawStack) -> bool {
        self.words == other.words
            && self.interpreted == other.interpreted
            && self.remark == other.remark
            && self.is_cut == other.is_cut
            && self.stop == other.stop
            && Arc::ptr_eq(&self.mappings, &other.mappings)
    }
}

impl Eq for RawStack {}

impl Hash for RawStack {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.words.hash(state);
        self.is_cut.hash(state);
        self.interpreted.hash(state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;

    #[test]
    fn a_stack_that_was_begun_with_the_address_of_abort_ends_there() {
        let storage: Box<Storage> = Box::new([const { AtomicU64::new(0) }; frames::CAPACITY]);
        let mut walked = frames::Frames::new(&storage);
        [0x10 | EXACT, 0x20, libc::abort as *const () as u64, 0x30]
            .into_iter()
            .for_each(|word| walked.push(word));
        let stack = RawStack::new(&storage, 4, Stop::OutOfBounds, &Arc::default(), Interpreted::default());
        assert_eq!(stack.addresses().map(|at| at.address).collect::<Vec<_>>(), [0x10, 0x20]);
        assert_eq!(stack.stop, Stop::Root);
    }

    #[test]
    fn a_handler_at_its_first_instruction_has_not_run() {
        let left = |words: &[u64]| -> Vec<u64> {
            let storage: Box<Storage> = Box::new([const { AtomicU64::new(0) }; frames::CAPACITY]);
            let mut walked = frames::Frames::new(&storage);
            words.iter().for_each(|&word| walked.push(word));
            let stack =
                RawStack::new(&storage, words.len(), Stop::Root, &Arc::default(), Interpreted::default());
            let stack = stack.before_handler(|address| address == 0x10);
            stack.addresses().map(|at| at.address).collect()
        };
        assert_eq!(left(&[0x10 | EXACT, 0x20 | EXACT, 0x30 | EXACT, 0x40]), [0x30, 0x40]);
        assert_eq!(left(&[0x11 | EXACT, 0x20 | EXACT, 0x30 | EXACT]), [0x11, 0x20, 0x30], "it runs");
        assert_eq!(left(&[0x10 | EXACT, 0x20, 0x30]), [0x10, 0x20, 0x30], "it was called");
        assert_eq!(left(&[0x10 | EXACT, 0x20 | EXACT]), [0x10, 0x20], "where the thread ran is not known");
    }
}
