//! Changes of stacks and threads between reading and writing, by the command line's options.

use rustc_hash::FxHashMap;
use std::sync::{Arc, Mutex, PoisonError};
use swipr_formats::model::{Frame, FrameKind, Function, Stack, Thread};

/// How much of a place in the source is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Places {
    /// File and line.
    #[default]
    Lines,
    /// The file.
    Files,
    /// The function, wherever in it a sample was: its address is where it starts.
    Functions,
}

/// How source files are called.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Files {
    /// By their path, as the debug information has it.
    #[default]
    Paths,
    /// By their name.
    Names,
}

/// What is kept of stacks with functions of interpreted languages or of JIT code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Languages {
    /// All frames.
    #[default]
    Between,
    /// These functions.
    Alone,
}

/// What to change. Shared by the readers of recordings that are merged.
#[derive(Debug, Default)]
pub struct Shape {
    places: Places,
    files: Files,
    languages: Languages,
    /// Threads by name, where those of one name are one.
    by_name: Option<Mutex<FxHashMap<String, Arc<Thread>>>>,
}

impl Shape {
    /// Keeps that much of places; `reuse_threads`: threads of one name become one.
    pub fn new(places: Places, reuse_threads: ReuseThreads) -> Shape {
        let by_name = (reuse_threads == ReuseThreads::Yes).then(Mutex::default);
        Shape { places, by_name, ..Shape::default() }
    }

    /// With files called so.
    pub fn files(self, files: Files) -> Shape {
        Shape { files, ..self }
    }

    /// With that of functions of languages.
    pub fn languages(self, languages: Languages) -> Shape {
        Shape { languages, ..self }
    }

    /// The thread as it is to be written.
    pub fn thread(&self, thread: Thread) -> Arc<Thread> {
        let Some(by_name) = &self.by_name else { return Arc::new(thread) };
        let mut by_name = by_name.lock().unwrap_or_else(PoisonError::into_inner);
        by_name.entry(thread.name.clone()).or_insert_with(|| Arc::new(thread)).clone()
    }

    /// The stack as it is to be written, with `root` as its outermost frame.
    pub fn stack(&self, mut frames: Vec<Frame>, root: Option<&str>) -> Arc<Stack> {
        if self.languages == Languages::Alone {
            Frame::leave_languages(&mut frames);
        }
        if self.places != Places::Lines || self.files != Files::Paths {
            frames.iter_mut().for_each(|frame| self.frame(frame));
        }
        frames.extend(root.map(note));
        Arc::new(Stack { frames })
    }

    fn frame(&self, frame: &mut Frame) {
        let mut functions: Vec<Function> = frame.functions.to_vec();
        for function in &mut functions {
            if self.places != Places::Lines {
                function.line = None;
            }
            if self.files == Files::Names {
                let name = function.file.as_deref().and_then(|file| file.rsplit('/').next());
                function.file = name.map(Arc::from);
            }
        }
        if self.places == Places::Functions
            && let Some(outermost) = functions.last_mut()
        {
            frame.address = frame.address.saturating_sub(outermost.offset);
            outermost.offset = 0;
        }
        frame.functions = functions.into();
    }
}

/// Whether threads of one name become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReuseThreads {
    /// They do.
    Yes,
    /// Each thread is itself.
    No,
}

fn note(text: &str) -> Frame {
    let function = Function { name: text.into(), mangled: None, offset: 0, file: None, line: None };
    Frame { address: 0, kind: FrameKind::Note, module: None, functions: Arc::from([function]) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use swipr_formats::model::Language;

    fn frame() -> Frame {
        let function = |name: &str, offset| Function {
            name: name.into(),
            mangled: None,
            offset,
            file: Some("a.c".into()),
            line: Some(7),
        };
        let functions = Arc::from([function("inlined", 0), function("f", 16)]);
        Frame { address: 0x1010, kind: FrameKind::Native, module: None, functions }
    }

    #[test]
    fn by_function_all_places_of_a_function_are_one() {
        let shape = Shape::new(Places::Functions, ReuseThreads::No);
        let other = Frame { address: 0x1020, ..frame() };
        let mut functions = other.functions.to_vec();
        functions[1].offset = 32;
        let other = Frame { functions: functions.into(), ..other };
        assert_eq!(shape.stack(vec![frame()], None), shape.stack(vec![other], None));
    }

    #[test]
    fn without_line_numbers_files_and_addresses_stay() {
        let stack = Shape::new(Places::Files, ReuseThreads::No).stack(vec![frame()], None);
        assert_eq!(stack.frames[0].address, 0x1010);
        let functions = &stack.frames[0].functions;
        assert!(functions.iter().all(|function| function.line.is_none() && function.file.is_some()));
    }

    #[test]
    fn files_have_their_paths_unless_names_are_wanted() {
        let long = || {
            let mut functions = frame().functions.to_vec();
            functions[1].file = Some("/src/lib/a.c".into());
            Frame { functions: functions.into(), ..frame() }
        };
        let of = |shape: Shape| shape.stack(vec![long()], None).frames[0].functions[1].clone();
        let paths = of(Shape::default());
        let names = of(Shape::default().files(Files::Names));
        assert_eq!((paths.file.as_deref(), paths.line), (Some("/src/lib/a.c"), Some(7)));
        assert_eq!((names.file.as_deref(), names.line, names.offset), (Some("a.c"), Some(7), 16));
    }

    #[test]
    fn functions_of_languages_alone_keep_remarks_and_stacks_without_any_stay() {
        let shape = Shape::default().languages(Languages::Alone);
        let of = |language| Frame { kind: FrameKind::Interpreted(language), ..frame() };
        let jit = || Frame { kind: FrameKind::Jit, ..frame() };
        let unnamed = Frame { functions: Arc::default(), ..jit() };
        let (java, cut) = (of(Language::Java), note("[truncated: x]"));
        let kept = shape.stack(vec![frame(), java.clone(), unnamed, jit(), frame(), cut.clone()], None);
        assert_eq!(kept.frames, [java, jit(), cut.clone()]);
        // Python's own chain is whole all the same.
        let kept = shape.stack(vec![of(Language::Python), frame(), note("[x]"), cut], None);
        assert_eq!(kept.frames, [of(Language::Python), note("[x]")]);
        assert_eq!(shape.stack(vec![frame()], None).frames, [frame()]);
    }

    #[test]
    fn threads_of_one_name_become_the_first_of_them_only_when_asked() {
        let thread = |tid| Thread { tid, name: "worker".into() };
        let apart = Shape::new(Places::Lines, ReuseThreads::No);
        assert_eq!((apart.thread(thread(1)).tid, apart.thread(thread(2)).tid), (1, 2));
        let merged = Shape::new(Places::Lines, ReuseThreads::Yes);
        assert_eq!((merged.thread(thread(1)).tid, merged.thread(thread(2)).tid), (1, 1));
    }

    #[test]
    fn a_root_is_the_outermost_frame() {
        let stack = Shape::default().stack(vec![frame()], Some("[process 7 sh]"));
        assert_eq!(&*stack.frames[1].functions[0].name, "[process 7 sh]");
    }
}
