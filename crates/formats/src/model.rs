//! What a recording is made of: samples of stacks of frames, and what was lost.

use std::borrow::Cow;
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
        let (start, end, file_offset, base, build_id) = <_>::default();
        Module { path: language.module(), start, end, file_offset, base, build_id }
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

/// What kind of code, or of remark, a frame stands for.
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
    pub fn from_module(module: &str) -> Option<Language> {
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

    /// Leaves the functions of languages and the remarks, unless no function is of a language.
    pub fn leave_languages(frames: &mut Vec<Frame>) {
        if frames.iter().any(Frame::is_of_language) {
            frames.retain(|frame| frame.is_of_language() || frame.kind == FrameKind::Note);
        }
    }
}

/// A stack, leaf first.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Stack {
    /// The frames, leaf first.
    pub frames: Vec<Frame>,
}

/// The thread a sample was taken of.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Thread {
    /// Kernel thread id.
    pub tid: u32,
    /// Its name, as the program gave it: not trusted.
    pub name: String,
}

/// What the thread was doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// On a CPU.
    Running,
    /// Ready to run but waiting for a CPU.
    Runnable,
    /// Blocked in the kernel; the number of the system call where known.
    Blocked(Option<u32>),
}

/// One stack of one thread, at one time or at several ticks in a row.
#[derive(Clone, Debug)]
pub struct Sample<'a> {
    /// Nanoseconds since the epoch; of the last tick, where there are several. 0: the time is not
    /// known, as in
    /// recordings that were read from sums.
    pub time_ns: u64,
    /// How many ticks it stands for, at least 1. Each is a sample.
    pub ticks: u32,
    /// Whose stack.
    pub thread: &'a Arc<Thread>,
    /// What it was doing.
    pub state: State,
    /// What one tick stands for: the interval in wall mode, the thread's CPU
    /// time around its sample in CPU mode. Nanoseconds.
    pub weight_ns: u64,
    /// The stack.
    pub stack: &'a Arc<Stack>,
}

impl Sample<'_> {
    /// When each of its ticks was. Where there are several the interval lies between them.
    pub fn times_ns(&self) -> impl Iterator<Item = u64> + use<> {
        let (last_ns, interval_ns) = (self.time_ns, self.weight_ns);
        (0..u64::from(self.ticks))
            .rev()
            .map(move |before| last_ns.saturating_sub(before.saturating_mul(interval_ns)))
    }
}

/// What a weight counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Every thread at every tick, on or off CPU.
    Wall,
    /// Only threads that used CPU time.
    Cpu,
}

/// What is known before the first sample.
#[derive(Clone, Debug)]
pub struct Header {
    /// Process id as the process itself sees it; 0 where it is not known.
    pub pid: u32,
    /// The program's name.
    pub process_name: String,
    /// Path of the executable.
    pub executable: String,
    /// Start of the recording, nanoseconds since the epoch; 0 where it is not known.
    pub start_ns: u64,
    /// Time between two ticks, nanoseconds.
    pub interval_ns: u64,
    /// What weights count.
    pub mode: Mode,
}

impl Header {
    /// What a recording is called that has no title: the program and its process.
    pub(crate) fn title(&self) -> String {
        match self.pid {
            0 => self.process_name.clone(),
            pid => format!("{} ({pid})", self.process_name),
        }
    }
}

/// What is known after the last sample. Every loss has its count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// How long the recording took, nanoseconds.
    pub duration_ns: u64,
    /// How long it should have been, where it is shorter because no more was kept; else 0.
    pub asked_ns: u64,
    /// Threads seen (that passed the filter).
    pub threads: u64,
    /// Ticks at which threads were observed.
    pub ticks: u64,
    /// Ticks left out because the agent came too late.
    pub late: u64,
    /// Samples written.
    pub samples: u64,
    /// Samples left out because of their state or their frames, by the recording's filters.
    pub filtered: u64,
    /// Samples whose stack does not reach the thread's root.
    pub truncated: u64,
    /// Samples thrown away because the reader of the output was too slow.
    pub dropped: u64,
    /// CPU time of which no stack could be had, nanoseconds: it is in the output without one.
    pub unsampled_cpu_ns: u64,
    /// Wall mode: samples for late ticks, from the threads' clocks at the next tick.
    pub filled: u64,
    /// Wall mode: samples for ticks at which a thread was not observed and whose clock moved
    /// meanwhile.
    pub inferred: u64,
    /// Time that the threads were ready to run and got no CPU, nanoseconds.
    pub cpu_wait_ns: u64,
    /// Samples a second that a running thread can have at most, where more were requested: the
    /// kernel's ticks. 0: as many as were requested.
    pub at_most_hz: u64,
    /// Addresses whose lines and inlined functions were not looked up: it would have taken too
    /// long.
    pub without_lines: u64,
    /// Processes of the recording, or files, whose losses are not known. Where there are some, a
    /// count of losses that is 0 is unknown, and others are lower bounds.
    pub uncounted: u64,
    /// A sample is the sum of an unknown number of samples.
    pub are_sums: bool,
    /// The recording has no end: what is counted here is what is left of it.
    pub is_cut: bool,
    /// Why stacks do not reach the root, and how many for each reason.
    pub truncated_by: Vec<(Cow<'static, str>, u64)>,
    /// What the recording took, where that was measured.
    pub cost: Option<Cost>,
}

impl Summary {
    /// Whether the agent got too little CPU time to sample the threads: most ticks were late, or
    /// none was taken in a second and more.
    pub fn is_starved(&self) -> bool {
        self.late > self.ticks || self.ticks == 0 && self.duration_ns > 1_000_000_000
    }
}

/// What sampling took while a recording ran, nanoseconds. Recordings that run at the same time
/// share it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Half of the interrupted threads were held at most so long. Percentiles are at most twice too
    /// large.
    pub held_p50_ns: u64,
    /// 99 of 100 were.
    pub held_p99_ns: u64,
    /// Half of the passes over the threads took at most so long.
    pub sweep_p50_ns: u64,
    /// 99 of 100 did.
    pub sweep_p99_ns: u64,
    /// CPU time of the agent's own threads.
    pub agent_cpu_ns: u64,
}

impl Cost {
    /// The figures and their names.
    pub(crate) fn fields(&self) -> [(&'static str, u64); 5] {
        [
            ("held_p50_ns", self.held_p50_ns),
            ("held_p99_ns", self.held_p99_ns),
            ("sweep_p50_ns", self.sweep_p50_ns),
            ("sweep_p99_ns", self.sweep_p99_ns),
            ("agent_cpu_ns", self.agent_cpu_ns),
        ]
    }
}
