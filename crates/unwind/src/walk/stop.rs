//! Why a walk stopped.

/// Why a walk stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Stop {
    /// At the thread's outermost frame: the stack is complete.
    Root = 0,
    /// At code without unwind information, whose frame pointer led nowhere.
    NoTable = 1,
    /// The next frame would lie outside of the stack, or could not be read.
    OutOfBounds = 2,
    /// The stack is deeper than [`super::MAX_FRAMES`].
    TooDeep = 3,
    /// A rule needs the frame pointer, which is not known for a blocked thread.
    FramePointerUnknown = 4,
    /// A rule that this walk does not support, or a register it did not follow.
    Unsupported = 5,
    /// No tables were published.
    NotReady = 6,
}

impl Stop {
    /// All reasons, in the order of their numbers.
    pub const ALL: [Stop; 7] = [
        Stop::Root,
        Stop::NoTable,
        Stop::OutOfBounds,
        Stop::TooDeep,
        Stop::FramePointerUnknown,
        Stop::Unsupported,
        Stop::NotReady,
    ];

    /// The reason with this number; [`Stop::NotReady`] for any other number.
    pub fn from_number(number: u32) -> Stop {
        Stop::ALL.get(number as usize).copied().unwrap_or(Stop::NotReady)
    }

    /// A short text for people.
    pub fn text(self) -> &'static str {
        match self {
            Stop::Root => "complete",
            Stop::NoTable => "no unwind information",
            Stop::OutOfBounds => "out of bounds",
            Stop::TooDeep => "too deep",
            Stop::FramePointerUnknown => "frame pointer unknown",
            Stop::Unsupported => "unsupported rule",
            Stop::NotReady => "no tables yet",
        }
    }
}
