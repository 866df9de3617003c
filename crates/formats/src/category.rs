//! What kind of code a shown frame is, for the colours of flame graphs and the categories of
//! Firefox Profiler.

use crate::model::{Frame, FrameKind, Language};

/// The kinds with colours of their own. Their numbers are written into HTML files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Class {
    /// Machine code of an object file.
    Native = 0,
    /// A function inlined into another.
    Inlined = 1,
    /// JIT code.
    Jit = 2,
    /// An interpreter's own functions.
    Interpreter = 3,
    /// Not code: what the thread waits for in the kernel, or for a CPU.
    Waiting = 4,
    /// Not code: a remark.
    Note = 5,
    /// A function written in Python.
    Python = 6,
    /// A function written in Perl.
    Perl = 7,
    /// A function written in PHP.
    Php = 8,
    /// A function written in Ruby.
    Ruby = 9,
    /// A function written in JavaScript.
    JavaScript = 10,
    /// A method of Java.
    Java = 11,
}

impl Class {
    pub(crate) const ALL: [Class; 12] = [
        Class::Native,
        Class::Inlined,
        Class::Jit,
        Class::Interpreter,
        Class::Waiting,
        Class::Note,
        Class::Python,
        Class::Perl,
        Class::Php,
        Class::Ruby,
        Class::JavaScript,
        Class::Java,
    ];

    /// For legends.
    pub(crate) fn label(self) -> &'static str {
        match self {
            Class::Native => "native",
            Class::Inlined => "inlined",
            Class::Jit => "JIT",
            Class::Interpreter => "interpreter",
            Class::Waiting => "waiting",
            Class::Note => "remark",
            Class::Python => "Python",
            Class::Perl => "Perl",
            Class::Php => "PHP",
            Class::Ruby => "Ruby",
            Class::JavaScript => "JavaScript",
            Class::Java => "Java",
        }
    }
}

/// The beginnings of file names of interpreters, each followed by something else than a letter.
const INTERPRETERS: [&str; 12] = [
    "libpython",
    "python",
    "libperl",
    "perl",
    "libruby",
    "ruby",
    "liblua",
    "lua",
    "libphp",
    "php",
    "libR",
    "libtcl",
];

/// What `frame` is; `inlined`: of one of its functions that is inlined into another.
pub(crate) fn of(frame: &Frame, inlined: bool) -> Class {
    match frame.kind {
        FrameKind::Note => Class::Note,
        FrameKind::Jit => Class::Jit,
        FrameKind::Interpreted(Language::Python) => Class::Python,
        FrameKind::Interpreted(Language::Perl) => Class::Perl,
        FrameKind::Interpreted(Language::Php) => Class::Php,
        FrameKind::Interpreted(Language::Ruby) => Class::Ruby,
        FrameKind::Interpreted(Language::JavaScript) => Class::JavaScript,
        FrameKind::Interpreted(Language::Java) => Class::Java,
        FrameKind::Native if inlined => Class::Inlined,
        FrameKind::Native if frame.module.as_ref().is_some_and(|module| is_interpreter(&module.path)) => {
            Class::Interpreter
        }
        FrameKind::Native => Class::Native,
    }
}

fn is_interpreter(path: &str) -> bool {
    let file = path.rsplit('/').next().unwrap_or(path);
    INTERPRETERS.iter().any(|name| {
        file.strip_prefix(name).is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_alphabetic()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interpreters_are_known_by_their_files() {
        for path in [
            "/usr/bin/python3.11",
            "/usr/lib/libpython3.11.so.1.0",
            "perl",
            "/usr/lib/libperl.so.5.36",
            "/opt/lua",
        ] {
            assert!(is_interpreter(path), "{path}");
        }
        for path in
            ["", "/usr/lib/libpythonic.so", "/usr/bin/luatex", "/opt/python3/bin/app", "/lib/libRmath.so"]
        {
            assert!(!is_interpreter(path), "{path}");
        }
    }
}
