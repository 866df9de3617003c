//! Which tier of a JIT compiler made a function, by the name that the compiler gives it.

/// How much a runtime has done for a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Tier {
    /// It is interpreted; the code is the interpreter's, or a step into it.
    Interpreter,
    /// Compiled as it stands.
    Baseline,
    /// Compiled with some optimisation.
    Middle,
    /// Optimised.
    Optimised,
    /// What the runtime itself needs: stubs, trampolines, inline caches.
    Stub,
}

impl Tier {
    pub(crate) const ALL: [Tier; 5] =
        [Tier::Interpreter, Tier::Baseline, Tier::Middle, Tier::Optimised, Tier::Stub];

    /// For people, and for the categories of formats that have some.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Tier::Interpreter => "interpreter",
            Tier::Baseline => "baseline",
            Tier::Middle => "middle",
            Tier::Optimised => "optimised",
            Tier::Stub => "stub",
        }
    }
}

/// Beginnings of the names of V8 (`linux-perf` and `--perf-prof`), SpiderMonkey (`PerfSpewer.cpp`),
/// CPython (`perf_trampoline.c`), HotSpot (`Compiler.perfmap`), PHP (`zend_jit.c`). Of V8's, the
/// mark of the tier is behind the kind.
const TIERS: [(&str, Tier); 15] = [
    ("Ion: ", Tier::Optimised),
    ("Baseline: ", Tier::Baseline),
    ("BaselineInterpreter: ", Tier::Interpreter),
    ("Interpreter", Tier::Interpreter),
    ("IC: ", Tier::Stub),
    ("Trampoline: ", Tier::Stub),
    ("VMWrapper: ", Tier::Stub),
    ("SharedStub: ", Tier::Stub),
    ("py::", Tier::Interpreter),
    ("TRACE-", Tier::Optimised),
    ("JIT$$", Tier::Stub),
    ("StubRoutines", Tier::Stub),
    ("Builtin:", Tier::Stub),
    ("BytecodeHandler:", Tier::Interpreter),
    ("RegExp:", Tier::Optimised),
];

/// The kinds of V8's functions.
const KINDS: [&str; 5] = ["JS:", "Function:", "LazyCompile:", "Script:", "Eval:"];

/// The tier of a JIT function; `None` where its name does not show it.
pub(crate) fn tier(name: &str) -> Option<Tier> {
    let of_v8 = KINDS.iter().find_map(|kind| name.strip_prefix(kind)?.chars().next());
    match of_v8 {
        Some('~') => Some(Tier::Interpreter),
        Some('^') => Some(Tier::Baseline),
        Some('+') => Some(Tier::Middle),
        Some('*') => Some(Tier::Optimised),
        _ => TIERS.iter().find(|(start, _)| name.starts_with(start)).map(|(_, tier)| *tier),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    #[test]
    fn names_of_jit_code_tell_their_tier() {
        for (name, expected) in [
            ("JS:~f /a.js:1:1", Some(Tier::Interpreter)),
            ("JS:^f /a.js:1:1", Some(Tier::Baseline)),
            ("JS:+f /a.js:1:1", Some(Tier::Middle)),
            ("Function:*f /a.js:1:1", Some(Tier::Optimised)),
            ("Ion: f (a.js:1:1)", Some(Tier::Optimised)),
            ("Baseline: f (a.js:1:1)", Some(Tier::Baseline)),
            ("IC: GetProp", Some(Tier::Stub)),
            ("py::f:/a.py", Some(Tier::Interpreter)),
            ("TRACE-1$f$2", Some(Tier::Optimised)),
            ("Interpreter", Some(Tier::Interpreter)),
            ("int Hot.hot(int)", None),
            ("hot:hot/2", None),
            ("JS:f", None),
        ] {
            assert_eq!(tier(name), expected, "{name}");
        }
    }
}
