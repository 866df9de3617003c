//! The functions of interpreted programs that were met so far, by their content.

use rustc_hash::FxHashMap;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use swipr_runtimes::code::Code;
use swipr_runtimes::room::{Chain, End};

/// Memory that they may take. More: all are forgotten, and copied again.
const MAX_BYTES: usize = 4 << 20;

/// A frame of an interpreted function.
#[derive(Clone, Debug)]
pub struct InterpretedFrame {
    /// The function; `None`: the frame only ends a segment, or is of a function that is being
    /// entered.
    pub code: Option<Arc<Code>>,
    /// Bytes from its start to the instruction, or the line; of V8, the number of its native frame
    /// among the kept ones.
    pub offset: i32,
    /// Native code entered the interpreter for it.
    pub is_entry: bool,
    /// Where in its source it is, in UTF-16 units; `None`: not known, or the line is found
    /// otherwise.
    pub place: Option<u32>,
}

/// The frames of one stack, leaf first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Interpreted {
    /// The frames.
    pub frames: Box<[InterpretedFrame]>,
    /// The root is missing.
    pub is_cut: bool,
    /// There are none because the interpreter's state of the thread is not known yet.
    pub is_unknown: bool,
}

/// All functions by their keys.
#[derive(Debug, Default)]
pub struct Functions {
    by_key: FxHashMap<u64, Arc<Code>>,
    bytes: usize,
}

impl Functions {
    /// The frames that a walk left. Calls `learned` for each new function.
    /// `None`: one of them cannot be told, so none is shown.
    pub fn take(&mut self, chain: &Chain, mut learned: impl FnMut(u64)) -> Option<Interpreted> {
        let mut frames = Vec::with_capacity(chain.frames().len());
        for frame in chain.frames() {
            let (offset, is_entry) = (frame.offset, frame.is_entry);
            if frame.key == 0 {
                frames.push(InterpretedFrame { code: None, offset, is_entry, place: None });
                continue;
            }
            let code = match chain.content(*frame) {
                None => self.by_key.get(&frame.key)?.clone(),
                Some(content) => {
                    let code = match self.by_key.get(&frame.key) {
                        Some(known) => known.clone(),
                        None => Arc::new(Code::read(content)?),
                    };
                    // Without all of its lines it is copied again the next time.
                    if code.is_whole() && !self.by_key.contains_key(&frame.key) {
                        self.bytes += code.bytes();
                        self.by_key.insert(frame.key, code.clone());
                        learned(frame.key);
                    }
                    code
                }
            };
            frames.push(InterpretedFrame { code: Some(code), offset, is_entry, place: None });
        }
        Some(Interpreted { frames: frames.into(), is_cut: chain.end() == End::Full, is_unknown: false })
    }

    /// Whether they take more memory than they may.
    pub fn are_too_large(&self) -> bool {
        self.bytes > MAX_BYTES
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.by_key.len()
    }

    /// All keys.
    pub fn keys(&self) -> impl Iterator<Item = u64> + '_ {
        self.by_key.keys().copied()
    }
}

impl InterpretedFrame {
    /// Where the function is, which no other one is.
    fn function(&self) -> Option<*const Code> {
        self.code.as_ref().map(Arc::as_ptr)
    }
}

impl PartialEq for InterpretedFrame {
    fn eq(&self, other: &InterpretedFrame) -> bool {
        self.function() == other.function()
            && (self.offset, self.is_entry, self.place) == (other.offset, other.is_entry, other.place)
    }
}

impl Eq for InterpretedFrame {}

impl Hash for InterpretedFrame {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.function().hash(state);
        self.offset.hash(state);
        self.place.hash(state);
    }
}
