//! Functions, frames and stacks.

use std::sync::Arc;

/// A file mapped into the profiled process, or a name for code without a file.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Module {
    /// The file's path as the process sees it; `[vdso]`, `[jit]` and the like without a file.
    pub path: String,
    /// First address of the module's executable memory.
    pub start: u64,
    /// The address behind the module's executable memory.
    pub end: u64,
    /// File offset of `start`.
    pub file_offset: u64,
    /// Where the image begins, from which symbol servers count: the address of its first loaded
    /// segment. That is `start` minus `file_offset` for most files, but linkers may number
    /// addresses in another way than bytes of the file.
    pub base: u64,
    /// GNU build id; empty when there is none.
    pub build_id: Vec<u8>,
}

impl Module {
    /// In the place of a file, of the functions of a language.
    pub fn of(language: Language) -> Module {
        Module::without_file(language.module())
    }

    /// In the place of a file, of JIT code.
    pub(crate) fn of_jit() -> Module {
        Module::without_file(JIT.to_owned())
    }

    fn without_file(path: String) -> Module {
        let (start, end, file_offset, base, build_id) = <_>::default();
        Module { path, start, end, file_offset, base, build_id }
    }
}

/// A function that an address belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Function {
    /// Demangled name.
    pub name: Arc<str>,
    /// The name as the object file has it, where it differs.
    pub mangled: Option<Arc<str>>,
    /// Bytes from the function's start to the address. 0 for inlined functions,
    /// which have no start of their own.
    pub offset: u64,
    /// Source file of the address.
    pub file: Option<Arc<str>>,
    /// Source line of the address, from 1.
    pub line: Option<u32>,
}

/// What kind of code, or of remark, a frame represents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FrameKind {
    /// Machine code of an object file.
    Native,
    /// JIT code: machine code without a file.
    Jit,
    /// A function of an interpreted program. It has no module, and its address is that of the
    /// interpreter's code that runs it, the same for all.
    Interpreted(Language),
    /// Not code but a remark, `[truncated: …]` or `[frames elided]`:
    /// `functions` has one entry with that text, the address is 0.
    Note,
}

/// JIT code in the place of a module, in formats without kinds of frames.
const JIT: &str = "[JIT]";

impl FrameKind {
    /// From the module's path in formats without kinds of frames. perf has JIT code in its map, or
    /// in files that `perf inject --jit` has made.
    pub fn from_module(path: &str) -> FrameKind {
        let file = path.rsplit('/').next().unwrap_or(path);
        let is_jit = path.starts_with(JIT)
            || path.starts_with("/tmp/perf-") && path.ends_with(".map")
            || file.starts_with("jitted-") && file.ends_with(".so");
        let otherwise = if is_jit { FrameKind::Jit } else { FrameKind::Native };
        Language::from_module(path).map_or(otherwise, FrameKind::Interpreted)
    }
}

/// What an interpreted program is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Language {
    /// Python, run by CPython.
    Python,
    /// Perl 5.
    Perl,
    /// PHP.
    Php,
    /// Ruby.
    Ruby,
    /// JavaScript, run by V8.
    JavaScript,
    /// Java and what else HotSpot runs.
    Java,
}

impl Language {
    /// Every one.
    pub const ALL: [Language; 6] = [
        Language::Python,
        Language::Perl,
        Language::Php,
        Language::Ruby,
        Language::JavaScript,
        Language::Java,
    ];

    /// Whether the interpreter links its frames with each other. The others have native frames.
    fn has_chain(self) -> bool {
        !matches!(self, Language::JavaScript | Language::Java)
    }

    /// As formats write it.
    pub const fn word(self) -> &'static str {
        match self {
            Language::Python => "python",
            Language::Perl => "perl",
            Language::Php => "php",
            Language::Ruby => "ruby",
            Language::JavaScript => "javascript",
            Language::Java => "java",
        }
    }

    /// From what formats write.
    pub fn from_word(word: &str) -> Option<Language> {
        Language::ALL.into_iter().find(|language| language.word() == word)
    }

    /// In the place of a module, in formats without kinds of frames.
    pub fn module(self) -> String {
        format!("[{}]", self.word())
    }

    /// From what formats without kinds of frames write.
    fn from_module(module: &str) -> Option<Language> {
        Language::from_word(module.strip_prefix('[')?.strip_suffix(']')?)
    }
}

/// One frame of a stack.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Frame {
    /// The pc, or the return address (the caller's next instruction).
    pub address: u64,
    /// What it is.
    pub kind: FrameKind,
    /// The module that holds `address`; `None` when unknown.
    pub module: Option<Arc<Module>>,
    /// Innermost first: inlined functions, then the function whose code it is.
    /// Empty when no name is known.
    pub functions: Arc<[Function]>,
}

impl Frame {
    /// Whether it is a function of an interpreted language, or of JIT code whose name is known.
    pub fn is_of_language(&self) -> bool {
        match self.kind {
            FrameKind::Interpreted(_) => true,
            FrameKind::Jit => !self.functions.is_empty(),
            FrameKind::Native | FrameKind::Note => false,
        }
    }

    /// Leaves the functions of languages and the remarks, unless no function is of a language. A
    /// chain of the interpreter's own is whole, however far the native walk came.
    pub fn leave_languages(frames: &mut Vec<Frame>) {
        let Some(outermost) = frames.iter().rfind(|frame| frame.is_of_language()) else { return };
        let has_chain = matches!(outermost.kind, FrameKind::Interpreted(language) if language.has_chain());
        let is_cut = |frame: &Frame| frame.functions.iter().any(|one| one.name.starts_with("[truncated: "));
        frames.retain(|frame| match frame.kind {
            FrameKind::Note => !(has_chain && is_cut(frame)),
            _ => frame.is_of_language(),
        });
    }
}

/// A stack, leaf first.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Stack {
    /// The frames, leaf first.
    pub frames: Vec<Frame>,
}
