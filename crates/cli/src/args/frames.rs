//! Options about which frames are shown of a program that an interpreter or JIT code runs.

use clap::{Args, ValueEnum};

/// Which frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ShownFrames {
    /// The language's functions between native ones
    Merged,
    /// The language's functions alone; stacks without any keep their native ones
    Interpreter,
    /// Native ones alone
    Native,
}

/// See the module's text.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct Frames {
    /// Which frames of a program in Python, Perl, PHP, …, or in JIT code (default: merged)
    #[arg(long, value_enum, value_name = "WHICH")]
    pub frames: Option<ShownFrames>,
    /// The language's functions alone: the same as --frames interpreter
    #[arg(long, conflicts_with = "frames")]
    pub no_native: bool,
    /// Native frames, too: so it is always, the option is there for habit's sake
    #[arg(short, long, conflicts_with_all = ["frames", "no_native"])]
    pub native: bool,
}

impl Frames {
    /// Which are shown.
    pub fn shown(self) -> ShownFrames {
        let by_flag = if self.no_native { ShownFrames::Interpreter } else { ShownFrames::Merged };
        self.frames.unwrap_or(by_flag)
    }

    /// The part of an agent's query; nothing for what an agent does anyway.
    pub fn query(self) -> &'static str {
        match self.shown() {
            ShownFrames::Native => "&frames=native",
            ShownFrames::Interpreter => "&frames=interpreter",
            ShownFrames::Merged => "",
        }
    }
}
