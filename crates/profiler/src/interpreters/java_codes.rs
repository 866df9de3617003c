//! The methods of Java that run in compiled code, by return address. Each code is compared before
//! further use.

use super::compiled_codes::CodeSource;
use super::functions::InterpretedFrame;
use rustc_hash::FxHashMap;
use std::sync::Arc;
use swipr_os::process;
use swipr_runtimes::code::Code;
use swipr_runtimes::java::compiled::{JavaCode, RunningMethods};
use swipr_runtimes::java::{JavaLayout, place};
use swipr_unwind::frames::EXACT;

/// Addresses that are known. More: all are forgotten, and read again.
const MAX_ADDRESSES: usize = 16_384;
/// For so long code that was compared is not compared again.
const HOLDS_NS: u64 = 2_000_000;

/// Methods, innermost first, with the numbers of their bytecodes.
type Methods = Arc<[(Option<Arc<Code>>, Option<u32>)]>;

/// All by native frames: the address, and whether it is a return address.
#[derive(Debug, Default)]
pub struct JavaCodes {
    by_word: FxHashMap<u64, KnownMethods>,
}

#[derive(Debug)]
struct KnownMethods {
    /// `None`: no method is there.
    code: Option<JavaCode>,
    /// When it was compared last.
    compared_ns: u64,
    methods: Methods,
}

impl JavaCodes {
    /// The frames of interpreted methods, and between them those of compiled ones. `native` are the
    /// native frames.
    pub fn with_compiled(
        &mut self,
        layout: &JavaLayout,
        interpreted: &[InterpretedFrame],
        native: &[u64],
        source: &mut CodeSource<'_>,
    ) -> Box<[InterpretedFrame]> {
        let mut all = Vec::with_capacity(interpreted.len() + 16);
        let mut interpreted = interpreted.iter().map(|frame| (place(frame.offset), frame)).peekable();
        for (number, &word) in (0..).zip(native) {
            if !layout.code_cache.may_have(word & !EXACT) {
                continue;
            }
            let of_handler = interpreted.next_if(|((at, _), _)| *at == number);
            if !layout.code_cache.is_interpreter(word & !EXACT) {
                let methods = self.methods(layout, word, source);
                // Other code may be there by now.
                let outer = methods.last().and_then(|(code, _)| code.as_ref());
                let is_same = |code: &Arc<Code>| outer.is_some_and(|outer| Arc::ptr_eq(outer, code));
                if of_handler.is_none_or(|(_, frame)| frame.code.as_ref().is_some_and(is_same)) {
                    all.extend(methods.iter().map(|(code, place)| InterpretedFrame {
                        code: code.clone(),
                        offset: number,
                        is_entry: false,
                        place: *place,
                    }));
                    continue;
                }
            }
            if let Some(((_, place), frame)) = of_handler {
                all.push(InterpretedFrame { offset: number, place, ..frame.clone() });
            }
        }
        all.into()
    }

    fn methods(&mut self, layout: &JavaLayout, word: u64, source: &mut CodeSource<'_>) -> Methods {
        let (pc, is_exact, now_ns) = (word & !EXACT, word & EXACT != 0, process::monotonic_ns());
        if let Some(known) = self.by_word.get_mut(&word) {
            if now_ns.saturating_sub(known.compared_ns) < HOLDS_NS {
                return known.methods.clone();
            }
            let at = pc - u64::from(!is_exact);
            if JavaCode::at(layout, at, (&mut *source.memory.0, source.memory.1)) == known.code {
                known.compared_ns = now_ns;
                return known.methods.clone();
            }
        }
        let memory = (&mut *source.memory.0, source.memory.1);
        let running = RunningMethods::read(layout, (pc, is_exact), memory, source.known, source.chain);
        let code = running.as_ref().map(|running| running.code);
        // A part of the machine is a frame only where it runs.
        let running = running.filter(|running| is_exact || running.code.is_method());
        let (mut frames, mut bytecodes) = <(Box<[InterpretedFrame]>, Vec<Option<u32>>)>::default();
        if let Some(running) = running
            && let Some(taken) = source.functions.take(source.chain, |key| source.learned.push(key))
        {
            (frames, bytecodes) = (taken.frames, running.bytecodes);
        }
        let methods: Methods = frames.iter().map(|frame| frame.code.clone()).zip(bytecodes).collect();
        if self.by_word.len() >= MAX_ADDRESSES {
            self.by_word.clear();
        }
        self.by_word.insert(word, KnownMethods { code, compared_ns: now_ns, methods: methods.clone() });
        methods
    }
}
