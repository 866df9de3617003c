//! Functions of Ruby between native frames: programs of which every possible stack is known, and
//! points at which Ruby itself says what its stack is. Rubies besides the installed one are tried
//! if the variable `RUBIES` names them, and more stacks if `STACKS_OF_RUBY` says how many.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use swipr_c_tests::agent::library;
use swipr_c_tests::host::Host;
use swipr_c_tests::interpreted::{
    Frame, Stack, at_points, expect_300_functions, interpreters, record, record_at, record_running, start,
    start_with,
};

/// Stacks of each program, at least.
const LEAST: usize = 300;
/// Lines of the functions of a family, in the order of calls, and how far apart families are.
const LINES: [(&str, u64, u64); 4] = [("r", 2, 3), ("f", 5, 8), ("g", 10, 12), ("h", 14, 18)];
const OF_FAMILY: u64 = 40;
/// Parts of a function that have frames of their own.
const PARTS: [&str; 3] = ["block in ", "rescue in ", "ensure in "];

/// What is wrong with a stack, if the program cannot have it.
fn fault(stack: &Stack, how: &str) -> Option<String> {
    let ruby: Vec<&Frame> = stack.ruby().collect();
    let root = &ruby[0].name;
    // The thread that waits for the end, as it begins.
    if root == "block in <main>" && ruby.iter().skip(1).all(|frame| frame.name == "IO#read") {
        return None;
    }
    let is_root = root == "<main>"
        || match how {
            "threads" | "collected" => root.starts_with("block "),
            "fibers" | "brief" => root == "block in Object#call",
            // An enumerator's fiber begins with a function of C.
            "enumerators" => root == "Enumerator#each",
            _ => false,
        };
    if !is_root && !stack.text().contains("[outer interpreted frames left out]") {
        return Some(format!("another root: {root}"));
    }
    let mut path = CallPath { how, family: None, depth: 0, is_called_by_c: false, may_have_no_line: false };
    let last = ruby.len() - 1;
    ruby.into_iter().enumerate().find_map(|(at, frame)| {
        path.may_have_no_line = at == last;
        match frame.file.as_str() {
            "family.rb" => path.fault_of_family(frame),
            _ => path.fault_of_program(frame),
        }
    })
}

fn is_without_line(frame: &Frame) -> bool {
    !frame.file.is_empty() && frame.line == 0
}

/// What was called so far, from the root on.
struct CallPath<'h> {
    how: &'h str,
    family: Option<u64>,
    /// How far the calls of a family are: the number of the last function in [`LINES`], plus 1.
    depth: usize,
    is_called_by_c: bool,
    /// The innermost function may be at an instruction without a line; compiled code notes none.
    may_have_no_line: bool,
}

impl CallPath<'_> {
    /// A frame that is of no family: what the program is made of, and functions of C.
    fn fault_of_program(&mut self, frame: &Frame) -> Option<String> {
        let is_program = frame.file.ends_with("known_stacks.rb");
        self.is_called_by_c = !is_program;
        if !frame.file.is_empty() && !is_program && !frame.file.starts_with("<internal:") {
            return Some(format!("{} of {}", frame.name, frame.file));
        }
        let is_missing = !frame.file.is_empty() && frame.line == 0 && !self.may_have_no_line;
        is_missing.then(|| format!("{} has no line", frame.name))
    }

    fn fault_of_family(&mut self, frame: &Frame) -> Option<String> {
        let is_called_by_c = std::mem::take(&mut self.is_called_by_c);
        let part = PARTS.iter().find_map(|part| Some((*part, frame.name.strip_prefix(part)?)));
        let (part, name) = part.unwrap_or(("", &frame.name));
        // The text itself, which defines the methods.
        if name.starts_with('<') && part.is_empty() {
            return None;
        }
        if frame.line == 0 && self.may_have_no_line {
            let k = name.rsplit('_').next().and_then(|k| k.parse().ok());
            let k: u64 = k.or(self.family).unwrap_or(0);
            let wrong = (0..4).all(|place| self.expected(place, k) != name);
            return wrong.then(|| format!("{} without a line", frame.name));
        }
        let lines = frame.line.saturating_sub(1);
        let (k, line) = (lines / OF_FAMILY, lines % OF_FAMILY + 1);
        let place = LINES.iter().position(|(_, first, last)| (*first..=*last).contains(&line));
        let Some(place) = place.filter(|&place| self.expected(place, k) == name) else {
            return Some(format!("{} at line {}", frame.name, frame.line));
        };
        if *self.family.get_or_insert(k) != k {
            return Some("two families".into());
        }
        // In a fiber the first function is a block, and what made it is not there.
        let is_first_of_fiber = self.how == "enumerators" && self.depth == 0 && place == 1;
        let again = place + 1 == self.depth || is_first_of_fiber;
        let is_evaluated = self.how == "evals" && place == 2 && again;
        let is_block = part == "block in " && self.how != "blocks";
        // Blocks and evaluated texts are called by functions of C, and others are not.
        let follows = match is_block || is_evaluated {
            true => again && is_called_by_c,
            false => {
                let is_next = place == self.depth || place == 1 && self.depth == 0;
                is_next || again && (place == 0 || !part.is_empty() && self.how == "exceptions")
            }
        };
        self.depth = place + 1;
        (!follows).then(|| format!("{} out of order", frame.name))
    }

    /// What a function is called, without the part of it.
    fn expected(&self, place: usize, k: u64) -> String {
        let letter = LINES[place].0;
        match (self.how, letter) {
            ("methods" | "missing", "f") => format!("T_{k}.f_{k}"),
            ("missing", "g") => format!("T_{k}#method_missing"),
            ("methods" | "missing", _) => format!("T_{k}#{letter}_{k}"),
            ("refined", "g") => format!("g_{k}"),
            ("blocks", "f" | "g" | "h") => "<main>".to_owned(),
            _ => format!("Object#{letter}_{k}"),
        }
    }
}

/// No stack that the program cannot have; nearly all are complete; all families are met.
fn expect_known_stacks(how: &str) {
    interpreters("ruby", "RUBIES").iter().for_each(|ruby| expect_known_stacks_of(ruby, how, ""));
}

/// `options` as for `RUBYOPT`.
fn expect_known_stacks_of(ruby: &Path, how: &str, options: &str) {
    let least = std::env::var("STACKS_OF_RUBY").map_or(LEAST, |text| text.parse().expect("a number"));
    let mut host = start_with(ruby, &[], "known_stacks.rb", &[how], &[("RUBYOPT", options)]);
    // The thread that moves objects is another one.
    let is_of_program = |stack: &Stack| stack.frames.len() > 1 && !stack.text().contains("GC.compact");
    let stacks = record_running(&host, least, is_of_program);
    host.tell("end");
    assert!(host.ended().success());
    let with: Vec<&Stack> = stacks.iter().filter(|stack| stack.ruby().next().is_some()).collect();
    let threads: BTreeSet<u64> = with.iter().map(|stack| stack.tid).collect();
    // Threads that run no Ruby; and the stack of a fiber that begins or ends.
    let is_other = |stack: &&Stack| !threads.contains(&stack.tid) || stack.frames[0].name != "_start";
    let without: Vec<&Stack> =
        stacks.iter().filter(|stack| stack.ruby().next().is_none() && !is_other(stack)).collect();
    let fault = |stack: &&Stack| Some((fault(stack, how)?, stack.text()));
    let wrong: Vec<(String, String)> = with.iter().filter_map(fault).collect();
    let uncertain = with.iter().filter(|stack| stack.text().contains("[native frames between")).count();
    let what = format!("{how} {options}, {}: {} of {} stacks", ruby.display(), with.len(), stacks.len());
    let what = format!("{what}, {} without", without.len());
    println!("{what}, {} impossible, {uncertain} uncertain", wrong.len());
    assert!(stacks.len() >= least, "{what}");
    assert!(wrong.is_empty(), "{what}, {} impossible: {:#?}", wrong.len(), &wrong[..wrong.len().min(5)]);
    // A thread's begin and end are native, but it calls functions in most of its time.
    assert!(how != "brief" || with.len() > stacks.len() / 2, "{what}");
    let texts: Vec<String> = without.iter().take(5).map(|stack| stack.text()).collect();
    assert!(without.len() <= 3 + stacks.len() / 100, "{what}: {texts:#?}");
    assert!(uncertain <= with.len() / 200 + 3, "{what}: {uncertain} uncertain");
    let has_no_line = |stack: &&&Stack| stack.ruby().last().is_some_and(is_without_line);
    let no_line = with.iter().filter(has_no_line).count();
    assert!(!options.is_empty() || no_line <= with.len() / 50 + 3, "{what}: {no_line} without a line");
    let families = |frame: &Frame| (frame.file == "family.rb").then_some(frame.line / OF_FAMILY);
    let met: BTreeSet<u64> = stacks.iter().flat_map(Stack::ruby).filter_map(families).collect();
    assert!(met.len() > 2, "{what}: {} families", met.len());
}

#[test]
fn no_stack_of_functions_that_call_each_other_is_impossible() {
    expect_known_stacks("plain");
}

#[test]
fn no_stack_of_methods_is_impossible() {
    expect_known_stacks("methods");
}

#[test]
fn no_stack_of_methods_that_are_missing_is_impossible() {
    expect_known_stacks("missing");
}

#[test]
fn no_stack_of_refined_methods_is_impossible() {
    expect_known_stacks("refined");
}

#[test]
fn no_stack_of_methods_that_are_blocks_is_impossible() {
    expect_known_stacks("blocks");
}

#[test]
fn no_stack_through_callbacks_of_c_is_impossible() {
    expect_known_stacks("callbacks");
}

#[test]
fn no_stack_below_a_deep_recursion_is_impossible() {
    expect_known_stacks("deep");
}

#[test]
fn no_stack_below_a_recursion_of_two_thousand_is_impossible() {
    expect_known_stacks("deeper");
}

#[test]
fn no_stack_of_functions_that_raise_is_impossible() {
    expect_known_stacks("exceptions");
}

#[test]
fn no_stack_of_fibers_is_impossible() {
    expect_known_stacks("fibers");
}

#[test]
fn no_stack_of_enumerators_that_have_a_fiber_is_impossible() {
    expect_known_stacks("enumerators");
}

#[test]
fn no_stack_of_three_threads_is_impossible() {
    expect_known_stacks("threads");
}

/// Regression: the list of threads was read too seldom for a server that has a thread for each
/// request.
#[test]
fn no_stack_of_threads_that_have_just_begun_is_impossible() {
    expect_known_stacks("brief");
}

#[test]
fn no_stack_through_evaluated_texts_is_impossible() {
    expect_known_stacks("evals");
}

#[test]
fn no_stack_of_methods_that_are_made_and_dropped_all_the_time_is_impossible() {
    expect_known_stacks("churn");
}

#[test]
fn no_stack_is_impossible_while_the_collector_moves_objects() {
    expect_known_stacks("collected");
}

/// Each Ruby with each compiler that it has, as an option.
fn compilers() -> Vec<(PathBuf, &'static str)> {
    let options = [("--yjit", "exit RubyVM::YJIT.enabled?"), ("--zjit", "exit RubyVM::ZJIT.enabled?")];
    let mut found = vec![];
    for (ruby, (option, is_on)) in
        interpreters("ruby", "RUBIES").iter().flat_map(|ruby| options.map(|option| (ruby, option)))
    {
        let ended = Command::new(ruby).args([option, "-e", is_on]).output();
        match ended.is_ok_and(|ended| ended.status.success()) {
            true => found.push((ruby.clone(), option)),
            false => println!("not run: {} has no {option}", ruby.display()),
        }
    }
    found
}

/// Code of its compilers has no unwind information: such stacks are marked, and have all functions.
#[test]
fn no_stack_of_compiled_functions_is_impossible() {
    for (ruby, option) in compilers() {
        for how in ["plain", "callbacks", "exceptions"] {
            expect_known_stacks_of(&ruby, how, option);
        }
    }
}

/// Regression: the native stack ends at compiled code, and Ruby was not read then. Of threads that
/// wait or run below it most had no function of Ruby.
#[test]
fn threads_below_compiled_code_have_their_functions() {
    for (ruby, option) in compilers() {
        let threshold = format!("{option}-call-threshold=2");
        let host = start_with(&ruby, &[option, &threshold], "compiled.rb", &[], &[]);
        let stacks = record(&host, "samples=2&hz=50&mode=wall");
        host.end();
        let names = |stack: &Stack| stack.ruby().map(|frame| frame.name.clone()).collect::<Vec<_>>();
        let expected = ["block (2 levels) in <main>", "Object#calls", "Object#waits"];
        let is_whole = |stack: &&Stack| names(stack).starts_with(&expected.map(String::from));
        let (found, all) = (stacks.iter().filter(is_whole).count(), stacks.len());
        let text: Vec<_> = stacks.iter().map(names).collect();
        assert!(found >= 16, "{}, {option}: {found} of {all}: {text:?}", ruby.display());
    }
}

/// Regression: slots that were offered to new threads before Ruby was found had no room for its
/// functions: the first samples of 16 threads had none.
#[test]
fn the_first_threads_of_a_program_that_is_recorded_from_its_start_have_functions() {
    for ruby in interpreters("ruby", "RUBIES") {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("runtimes/short_threads.rb");
        let stacks_of_threads = |_| {
            let mut command = Command::new(&ruby);
            command.arg(&script).env("LD_PRELOAD", library());
            command.env("SWIPR_RECORDER", std::process::id().to_string());
            let host = Host::spawn(command);
            let mut stacks = record(&host, "seconds=4&hz=250&mode=cpu");
            stacks.retain(|stack| stack.is_running && stack.tid != u64::from(host.pid()));
            stacks
        };
        // Other processes may have the CPUs while it starts.
        let stacks = (0..5).map(stacks_of_threads).find(|stacks| !stacks.is_empty()).unwrap_or_default();
        // Without a function the run loop itself is there.
        let runs = |stack: &&Stack| stack.text().contains("rb_vm_exec") || stack.ruby().next().is_some();
        let runs: Vec<&Stack> = stacks.iter().filter(runs).collect();
        let without = runs.iter().filter(|stack| stack.ruby().next().is_none()).count();
        println!("{}: {without} of {} without", ruby.display(), runs.len());
        assert!(without <= 2 && !runs.is_empty(), "{}: {without} of {}", ruby.display(), runs.len());
    }
}

/// Regression: in a child of 3.1's the first thread has the parent's id, so it had no functions of
/// Ruby until it ran. Puma's workers have one that waits for ever.
#[test]
fn the_first_thread_of_a_forked_child_has_its_functions_while_it_waits() {
    for ruby in interpreters("ruby", "RUBIES") {
        let mut host = start(&ruby, "forked.rb", &[]);
        let child: u64 = host.heard("child ").trim().parse().expect("an id");
        let socket = host.socket_of(child as u32);
        let waits = |stack: &Stack| stack.ruby().any(|frame| frame.name == "Object#waits");
        let is_found = (0..20).any(|_| {
            let stacks = record_at(&socket, "samples=5&hz=50&mode=wall");
            stacks.iter().any(|stack| stack.tid == child && waits(stack))
        });
        host.tell("end");
        assert!(host.ended().success());
        assert!(is_found, "{}", ruby.display());
    }
}

/// Regression: a library with another interpreter, at a lower address and never started, was taken
/// for the one whose functions are read.
#[test]
fn another_languages_library_that_is_loaded_later_changes_nothing() {
    for ruby in interpreters("ruby", "RUBIES") {
        let mut host = start(&ruby, "other_library.rb", &["libperl.so.5.36"]);
        let names_of_ruby = |host: &Host| {
            let stacks = record_running(host, LEAST / 10, |stack| stack.frames.len() > 2);
            let named = stacks.iter().filter(|stack| stack.ruby().any(|it| it.name == "Object#computes"));
            (named.count(), stacks.len())
        };
        let (named, all) = names_of_ruby(&host);
        assert!(named * 10 > all * 9, "{named} of {all}");
        host.tell("load");
        let answer = host.wait_for("loaded ");
        let (named, all) = names_of_ruby(&host);
        host.tell("end");
        assert!(host.ended().success());
        assert!(named * 10 > all * 9, "{named} of {all} with {answer}");
    }
}

/// Frames of C between those of Ruby: `qsort` calls a block back, in eight levels.
#[test]
fn native_functions_stand_between_their_callers_and_the_blocks_that_they_call() {
    for ruby in interpreters("ruby", "RUBIES") {
        if !Command::new(&ruby).args(["-e", "require 'fiddle'"]).status().expect("it runs").success() {
            println!("not run: {} has no fiddle", ruby.display());
            continue;
        }
        let mut host = start(&ruby, "order.rb", &[]);
        let stacks = record_running(&host, LEAST, |stack| stack.ruby().next().is_some());
        host.tell("end");
        assert!(host.ended().success());
        let mut deepest = 0;
        for stack in &stacks {
            let marks = stack.frames.iter().filter_map(|frame| match frame.name.as_str() {
                "Object#sort" => Some('s'),
                "block in Object#sort" => Some('b'),
                name if name.starts_with("qsort") => Some('q'),
                _ => None,
            });
            let mut order: Vec<char> = marks.collect();
            order.dedup();
            deepest = deepest.max(order.iter().filter(|&&mark| mark == 'b').count());
            let cycle = ['s', 'q', 'b'].iter().cycle();
            assert!(order.iter().zip(cycle).all(|(seen, next)| seen == next), "{}", stack.text());
        }
        assert_eq!(deepest, 8, "{}", ruby.display());
        println!("{}: {} stacks in order", ruby.display(), stacks.len());
    }
}

/// A frame as it is compared: Ruby says of functions of C where they were called, and shows those
/// of its own that are written in Ruby likewise from 3.4 on.
fn compared(frame: &str, is_of_c: bool, has_classes: bool) -> String {
    let mut parts = frame.split('|');
    let (name, place) = (parts.next().unwrap_or_default(), parts.collect::<Vec<_>>().join(":"));
    let (before, function) =
        name.rsplit_once(' ').map_or(("", name), |(before, function)| (before, function));
    // 3.4 says of what is rescued or ensured that it is the function; others have no classes.
    let before =
        if has_classes { before.replace("rescue in", "").replace("ensure in", "") } else { before.into() };
    let function = match function.rsplit_once(['#', '.']) {
        Some((class, function)) if !has_classes && !class.is_empty() => function,
        _ => function,
    };
    format!("{before} {function} {}", if is_of_c { "" } else { &place }).trim().to_owned()
}

fn is_of_c(seen: &str) -> bool {
    seen.ends_with("||0") || seen.contains("|<internal:")
}

/// Regression: of stacks of more than 80 to 150 different methods the outer part was missing.
#[test]
fn stacks_of_many_different_methods_are_complete() {
    for interpreter in interpreters("ruby", "RUBIES") {
        expect_300_functions(start(&interpreter, "many_methods.rb", &[]), LEAST, &interpreter);
    }
}

#[test]
fn stacks_of_a_blocked_program_are_those_that_ruby_itself_sees() {
    for interpreter in interpreters("ruby", "RUBIES") {
        at_points(&interpreter, "barriers.rb", "ruby", |stack, seen, expected| {
            let (leaf, rest) = seen.split_first().expect("functions");
            assert_eq!(leaf, "IO#gets||0", "{}", stack.text());
            let has_classes = expected.last().is_some_and(|_| expected[0].starts_with("Object#"));
            let is_part = |frame: &str| frame.starts_with("rescue in ") || frame.starts_with("ensure in ");
            // 3.4 shows what rescues and the function that it is part of as one.
            let before = std::iter::once("").chain(rest.iter().map(String::as_str));
            let seen = rest.iter().zip(before).filter(|(_, before)| !has_classes || !is_part(before));
            let rest: Vec<&String> = seen.map(|(frame, _)| frame).collect();
            assert_eq!(rest.len(), expected.len(), "{rest:#?} {expected:#?}");
            for (seen, expected) in rest.iter().zip(expected) {
                let is_of_c = is_of_c(seen);
                let [seen, expected] =
                    [seen.as_str(), expected].map(|frame| compared(frame, is_of_c, has_classes));
                assert_eq!(seen, expected, "{}: {rest:#?} {}", interpreter.display(), stack.text());
            }
        });
    }
}
