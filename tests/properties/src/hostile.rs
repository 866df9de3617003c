//! Names that try to break out of their place, as thread, function, file and module, in one
//! recording.

use crate::recording::{Recording, at, bare, function, module, native, stack, thread};
use swipr_formats::model::{FrameKind, Language, Mode, State};

/// Names that were seen to hurt a reader, or are made to.
pub fn names() -> Vec<String> {
    let long = "x".repeat(10_000);
    let mut names: Vec<String> = [
        "",
        " ",
        "a",
        "#",
        "# ========",
        "{\"meta\":1}",
        "[unknown]",
        "foo\n\nevil 1/2 3.4: 5 cpu-clock:\n\t00 pwned+0x0 (x)",
        "foo\r\n\n",
        "tab\tbed",
        "foo)",
        "(foo)",
        "()",
        "((((",
        "/lib/x.so (deleted)",
        "name with blanks",
        "  leading and trailing  ",
        "a;b;c",
        ";",
        "naïve→ünïcödé名前",
        "12345",
        "1.5:",
        "foo 1.5:",
        "foo 12",
        "foo 12 13.5",
        "77/78 1.5: 2 x:",
        "0x1234",
        "0Xabc",
        "foo+0x12",
        "a->b->c",
        "->",
        "-\u{0}>",
        "(anonymous namespace)::f(int)",
        "operator()(int)",
        "Foo::operator()(int)::{lambda(int)#1}::operator()(int) const",
        "closure #1 (Swift.Int) -> () in main.f() -> ()",
        "<(A, B) as Trait>::method",
        "<\"'>",
        "</script><script>document.title='pwned'</script>",
        "<!--<script>",
        "<img src=x onerror=alert(1)>",
        "]]><svg onload=alert(1)>",
        "&lt;b&gt;&amp;",
        "\" onmouseover=\"alert(1)",
        "{{DATA}}{{TITLE}}{{SCRIPT}}",
        "javascript:alert(1)",
        "__proto__",
        "\u{2028}\u{2029}\u{feff}\u{202e}",
        "\\u003cscript\\u003e",
        "\u{fffe}\u{ffff}",
        "core::ops::f::h0123456789abcdef",
        "h0123456789abcdef",
        "_$LP$h0123456789abcdef",
        "nul\u{0}bell\u{7}esc\u{1b}[31m",
        "next\u{85}line\u{2028}para\u{2029}nbsp\u{a0}bom\u{feff}",
        "turned\u{202e}round",
        "日本語の関数名はとても長いです",
        "a→0123456789abcde",
        "%s%n%20",
        "\"quoted\\\"",
        "<script>alert(1)</script>&amp;",
        "java",
        "kworker/0:1",
        "x (in y)",
    ]
    .map(str::to_owned)
    .to_vec();
    // Every offset of a wide character to the end of the name.
    names.extend((10..20).map(|tail| format!("wide→{}", "y".repeat(tail))));
    names.push(long.clone());
    names.push(format!("{long}("));
    names.push(format!("({long}"));
    names
}

/// A thread a name; each has one sample: the hostile function inlined into itself, then one without
/// a name, then the hostile function as one of a language, each in its turn, then a plain one.
pub fn recording() -> Recording {
    let mut recording = Recording::new(Mode::Wall);
    let languages = Language::ALL.into_iter().cycle();
    for ((name, tid), language) in names().iter().zip(1000..).zip(languages) {
        let frames = vec![
            native(
                0x10,
                &module(name, 0),
                vec![at(function(name, 0), name, 1), at(function(name, 0xabc), name, 2)],
            ),
            native(0x20, &module(name, 0), vec![]),
            bare(0x28, FrameKind::Interpreted(language), vec![at(function(name, 0), name, 3)]),
            native(0x30, &module("/bin/app", 0), vec![function("main", 1)]),
        ];
        recording.add(&thread(tid, name), State::Running, WEIGHT_NS, &stack(frames));
    }
    recording
}

/// Lines of each stack.
pub const FRAMES: usize = 5;
/// What each sample represents.
pub const WEIGHT_NS: u64 = 1000;
