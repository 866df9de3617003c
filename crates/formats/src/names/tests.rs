//! What the name rules promise, name by name.

use std::sync::{Arc, LazyLock};

use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use super::*;
use crate::model::{Language, Module};

static NATIVE: LazyLock<Frame> = LazyLock::new(|| frame(FrameKind::Native));

fn frame(kind: FrameKind) -> Frame {
    Frame { address: 1, kind, module: None, functions: Arc::default() }
}

/// Regression: `block (2 levels) in f` and `block in f` were one function, then also where
/// FlameGraph or inferno had read them; Perl's `(eval)` was `_`.
#[test]
fn names_of_interpreted_functions_are_not_shortened_and_have_nothing_that_readers_cut() {
    let ruby = frame(FrameKind::Interpreted(Language::Ruby));
    for (name, expected) in
        [("block (2 levels) in f", "block {2 levels} in f"), ("(eval)", "{eval}"), ("f(int)", "f{int}")]
    {
        let shown = |names| symbol(&ruby, &function(name, None), names);
        assert_eq!(shown(Names::Safe).as_deref(), Some(expected));
        assert!(shown(Names::Raw).is_some_and(|shown| shown.ends_with(name)));
    }
}

fn function(name: &str, mangled: Option<&str>) -> Function {
    Function { name: name.into(), mangled: mangled.map(Into::into), offset: 0, file: None, line: None }
}

fn safe(name: &str) -> String {
    symbol(&NATIVE, &function(name, None), Names::Safe).unwrap_or_default()
}

fn raw(name: &str) -> String {
    symbol(&NATIVE, &function(name, None), Names::Raw).unwrap_or_default()
}

#[test]
fn drops_argument_lists() {
    for (name, expected) in [
        ("main", "main"),
        ("foo(int, char const*)", "foo"),
        ("Foo::get() const", "Foo::get"),
        ("Foo::get() const &", "Foo::get"),
        ("Foo::get()&&", "Foo::get"),
        ("(anonymous namespace)::f(int)", "{anonymous}::f"),
        ("a::(anonymous namespace)::f(int)", "a::{anonymous}::f"),
        ("void sort<int*>(int*, int*)", "void sort<int*>"),
        ("f(int) [clone .cold]", "f [clone .cold]"),
        ("f[abi:cxx11](int)", "f[abi:cxx11]"),
        ("Foo::~Foo()", "Foo::~Foo"),
        ("decltype(auto) f<int>(int)", "decltype{auto} f<int>"),
        ("std::function<void (int)>::f(int)", "std::function<void {int}>::f"),
        ("operator new(unsigned long)", "operator new"),
        ("LMain;::run([I)Ljava/lang/String;", "LMain:::run"),
        ("LMain;::run()[B", "LMain:::run"),
        ("myoperator(int)", "myoperator"),
    ] {
        assert_eq!(safe(name), expected, "{name}");
    }
}

/// Regression: Crystal's methods of one name were one.
#[test]
fn argument_types_of_crystal_stay() {
    for (name, expected) in [
        ("*Fiber#run:(IO::FileDescriptor | Nil)", "*Fiber#run:{IO::FileDescriptor | Nil}"),
        ("~procProc(Int32)@a.cr:7", "~procProc{Int32}@a.cr:7"),
    ] {
        assert_eq!(safe(name), expected);
    }
}

#[test]
fn keeps_operators_whole() {
    for (name, expected) in [
        ("operator()(int)", "operator()"),
        ("Foo::operator()(int) const", "Foo::operator()"),
        ("Foo::operator()<int>(int)", "Foo::operator{}<int>"),
        ("Foo::operator<(Foo const&)", "Foo::operator<"),
        ("Foo::operator>>(int)", "Foo::operator>>"),
        ("operator<< <char>(std::ostream&)", "operator<< <char>"),
        ("Foo::operator->() const", "Foo::operator→"),
        ("Foo::operator<=>(Foo const&) const", "Foo::operator<=>"),
        ("Foo::operator[](int)", "Foo::operator[]"),
        ("Foo::operator bool() const", "Foo::operator bool"),
    ] {
        assert_eq!(safe(name), expected, "{name}");
    }
}

#[test]
fn keeps_lambdas_and_closures_apart() {
    for (name, expected) in [
        ("f(int)::{lambda(int)#1}::operator()(int) const", "f::{lambda{int}#1}::operator()"),
        ("f(int)::{lambda(long)#1}::operator()(long) const", "f::{lambda{long}#1}::operator()"),
        ("F::operator()(int)::{lambda()#1}::operator()() const", "F::operator{}::{lambda{}#1}::operator()"),
        ("a::b::{closure#0}", "a::b::{closure#0}"),
        ("a::b::{{closure}}::h0123456789abcdef", "a::b::{{closure}}"),
        ("<(A, B) as T>::f", "<{A, B} as T>::f"),
        ("<fn(A) -> B as T>::f", "<fn{A} → B as T>::f"),
        ("main.(*Client).Do", "main.(*Client).Do"),
    ] {
        assert_eq!(safe(name), expected, "{name}");
    }
}

#[test]
fn simplifies_swift_names() {
    for (name, expected) in [
        ("main.f() -> ()", "main.f"),
        ("main.f(x: Swift.Int) async throws -> Swift.Int", "main.f"),
        ("closure #1 () -> () in main.f() -> ()", "closure #1 in main.f"),
        (
            "closure #2 (Swift.Int) -> Swift.Bool in closure #1 () -> () in main.f() -> ()",
            "closure #2 in closure #1 in main.f",
        ),
        ("main.(hidden in _8A2F)(x: Swift.Int) -> ()", "main.hidden"),
        ("main.Foo.x.getter : Swift.Int", "main.Foo.x.getter"),
        ("(extension in main):Swift.Array.sum() -> A", "{extension in main}:Swift.Array.sum"),
        (
            "(1) suspend resume partial function for main.f() async -> ()",
            "{1} suspend resume partial function for main.f",
        ),
        (
            "generic specialization <Swift.Int> of main.f(A) -> A",
            "generic specialization <Swift.Int> of main.f",
        ),
    ] {
        assert_eq!(safe(name), expected, "{name}");
    }
}

#[test]
fn raw_names_keep_what_breaks_nothing() {
    assert_eq!(raw("foo(int, char const*) const"), "foo(int, char const*) const");
    assert_eq!(raw("(anonymous namespace)::f(int)"), "{anonymous}::f(int)");
    assert_eq!(raw("main.f() -> ()"), "main.f() → ()");
    assert_eq!(raw("<(A, B) as T>::f"), "_<(A, B) as T>::f");
}

#[test]
fn mangled_names_are_taken_where_they_are_known() {
    let both = function("f(int)", Some("_Z1fi"));
    assert_eq!(symbol(&NATIVE, &both, Names::Mangled).as_deref(), Some("_Z1fi"));
    let plain = function("main", None);
    assert_eq!(symbol(&NATIVE, &plain, Names::Mangled).as_deref(), Some("main"));
}

#[test]
fn no_name_begins_or_ends_in_a_way_that_readers_misread() {
    for (name, expected) in [
        ("0x1234", "_0x1234"),
        ("()", "{}"),
        ("<>", "_<>"),
        ("\n\tf\u{2028}g;h\u{0}", "f_g:h"),
        ("f 12 1.5", "f 12_1.5"),
        ("h0123456789abcdef", "__h0123456789abcdef"),
        ("f+0x12", "f+0x12"),
        ("a-\u{1}>b", "a-_>b"),
    ] {
        assert_eq!(safe(name), expected, "{name:?}");
    }
    for nothing in ["", "  ", "\n", "[unknown]"] {
        assert_eq!(symbol(&NATIVE, &function(nothing, None), Names::Safe), None);
    }
}

#[test]
fn deep_and_unbalanced_brackets_end_quickly() {
    for piece in ["(", ")", "<", ">", "(<", ".(", "->", " -> ", "{(", "operator("] {
        for names in [Names::Safe, Names::Raw] {
            let name = symbol(&NATIVE, &function(&piece.repeat(10_000), None), names);
            assert!(name.is_some_and(|name| !name.starts_with('(')), "{piece}");
        }
    }
}

#[test]
fn module_paths_become_one_word_without_parentheses() {
    let frame = |kind, path: Option<&str>| Frame {
        address: 1,
        kind,
        module: path.map(|path| {
            Arc::new(Module {
                path: path.to_owned(),
                start: 0,
                end: 2,
                file_offset: 0,
                base: 0,
                build_id: Vec::new(),
            })
        }),
        functions: Arc::new([]),
    };
    let native = |path| module(&frame(FrameKind::Native, Some(path)), 7);
    assert_eq!(native("/lib/libc.so.6"), "/lib/libc.so.6");
    assert_eq!(native("/a b/(x)%\n;.so (deleted)"), "/a%20b/%28x%29%25%0a%3b.so");
    assert_eq!(native(""), "[unknown]");
    assert_eq!(native("(deleted)"), "%28deleted%29");
    assert_eq!(module(&frame(FrameKind::Native, None), 7), "[unknown]");
    assert_eq!(module(&frame(FrameKind::Jit, None), 7), "/tmp/perf-7.map");
    let unnamed = |path| unnamed(&frame(FrameKind::Native, Some(path)));
    assert_eq!(unnamed("/lib/libc.so.6"), "[libc.so.6]");
    assert_eq!(unnamed("[vdso]"), "[vdso]");
    assert_eq!(unnamed("///"), "[unknown]");
    let jit = frame(FrameKind::Jit, None);
    assert_eq!(super::unnamed(&jit), "[JIT]");
    assert_eq!(module(&jit, 7), "/tmp/perf-7.map");
}

#[test]
fn thread_names_become_one_word() {
    for (name, expected) in [
        ("main", "main"),
        ("x", "x_"),
        ("", "unnamed"),
        (" # #", "unnamed"),
        ("# ========", "========"),
        ("my thread;1", "my_thread:1"),
        ("{\"a\":1}", "_\"a\":1}"),
        ("a\nb\u{a0}c", "a_b_c"),
    ] {
        assert_eq!(thread(name), expected, "{name:?}");
    }
}

/// Names of letters that matter to some reader, and of any others.
fn names() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z<>(){}\\[\\] ;:>.0-9x#$&*-]{0,40}", any::<String>(), "[α-ω]{0,12}h[0-9a-f]{16}"]
}

proptest! {
    #![proptest_config(ProptestConfig {
        rng_seed: RngSeed::Fixed(1),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn any_function_has_a_name_that_keeps_the_rules(name in names()) {
        for style in [Names::Safe, Names::Raw] {
            let Some(text) = symbol(&NATIVE, &function(&name, None), style) else { continue };
            prop_assert!(!text.is_empty() && text.trim() == text);
            prop_assert!(!text.starts_with(['(', ' ']) && !text.starts_with("0x"));
            prop_assert!(!text.contains(';') && !text.contains("->"));
            prop_assert!(!text.chars().any(|c| c.is_control() || c != ' ' && c.is_whitespace()));
            // What is safe stays as it is.
            prop_assert_eq!(symbol(&NATIVE, &function(&text, None), Names::Raw), Some(text));
        }
    }

    #[test]
    fn any_path_is_one_word_and_can_be_decoded(name in names()) {
        let path = path(&name);
        prop_assert!(!path.is_empty() && !path.contains(|c: char| c.is_whitespace() || "();".contains(c)));
        if path != UNKNOWN {
            let mut bytes = Vec::new();
            let mut pieces = path.split('%');
            bytes.extend(pieces.next().unwrap_or("").bytes());
            for piece in pieces {
                let (digits, rest) = piece.split_at(2);
                bytes.push(u8::from_str_radix(digits, 16).unwrap());
                bytes.extend(rest.bytes());
            }
            prop_assert_eq!(String::from_utf8(bytes).unwrap(), name.strip_suffix(" (deleted)").unwrap_or(&name));
        }
    }

    #[test]
    fn any_thread_is_one_word_of_two_characters_or_more(name in names()) {
        let word = thread(&name);
        prop_assert!(word.chars().count() >= 2 || word.encode_utf16().count() >= 2);
        prop_assert!(!word.contains(|c: char| c.is_whitespace() || c == ';'));
        let is_comment = word.starts_with(['#', '{']);
        prop_assert!(!is_comment);
    }
}
