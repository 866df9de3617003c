//! Which frames of a recording are written. A recording has the frames that it was made with: what
//! cannot be had of them is refused.

use crate::args::ShownFrames;
use crate::error::Error;
use crate::read::Readable;
use crate::shape::{Languages, Shape};
use swipr_formats::model::{Frame, FrameKind, Stack};

/// What was asked for, and whether the recording has it.
#[derive(Debug)]
pub struct WantedFrames {
    shown: ShownFrames,
    has_languages: bool,
}

impl WantedFrames {
    /// Of no stack yet.
    pub fn new(shown: ShownFrames) -> WantedFrames {
        WantedFrames { shown, has_languages: false }
    }

    /// What is to be changed about stacks.
    pub fn shape(&self, shape: Shape) -> Shape {
        match self.shown {
            ShownFrames::Interpreter => shape.languages(Languages::Alone),
            ShownFrames::Merged | ShownFrames::Native => shape,
        }
    }

    /// Takes a stack as it is to be written.
    pub fn take(&mut self, stack: &Stack) -> Result<(), Error> {
        self.has_languages |= stack.frames.iter().any(Frame::is_of_language);
        let is_interpreted = |frame: &Frame| matches!(frame.kind, FrameKind::Interpreted(_));
        if self.shown == ShownFrames::Native && stack.frames.iter().any(is_interpreted) {
            let why =
                "the interpreter's own frames are not in it: functions of its language are in their places";
            return Err(Error::new(why, "record with --frames native"));
        }
        Ok(())
    }

    /// After the last stack of a recording in that format.
    pub fn end(&self, format: Readable) -> Result<(), Error> {
        match (self.shown, format) {
            (ShownFrames::Merged, _) => Ok(()),
            (_, Readable::Folded) => {
                let why = "folded stacks do not say which functions are an interpreted program's";
                Err(Error::new(why, "convert a recording in another format, best raw"))
            }
            (ShownFrames::Interpreter, _) if !self.has_languages => {
                let why = "no frame in it is said to be an interpreted program's function, or JIT code's";
                Err(Error::new(why, "record without --frames native, best in the format raw"))
            }
            _ => Ok(()),
        }
    }
}
