//! Functions of Perl between native frames: programs of which every possible stack is known, and
//! points at which Perl itself says what its stack is. Perls besides the installed one are tried if
//! the variable `PERLS` names them, and more stacks if `STACKS_OF_PERL` says how many.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use swipr_c_tests::directory::Directory;
use swipr_c_tests::interpreted::{
    Frame, Stack, at_points, expect_nothing_called_by, interpreters, record_running, start, start_command,
};
use swipr_c_tests::program::compile;

/// Stacks of each program, at least.
const LEAST: usize = 300;
/// Lines of the subs in `known_stacks.pl`, from first to last, in the order of calls.
const LINES: [(&str, u64, u64); 4] = [("r", 2, 3), ("f", 5, 8), ("g", 10, 12), ("h", 14, 18)];

/// What is wrong with a stack, if the program cannot have it.
enum Fault {
    Stack(String),
    /// Its innermost frame is at a line of another sub.
    Line,
}

/// Whether the program can have this stack.
fn fault(stack: &Stack) -> Option<Fault> {
    let perl: Vec<&Frame> = stack.perl().collect();
    let wrong = |why: String| Some(Fault::Stack(why));
    let last = perl.len() - 1;
    if perl[0].name != "main" || !perl[0].file.ends_with("known_stacks.pl") {
        return wrong("another root".into());
    }
    let (mut family, mut depth) = (None, 0);
    for (at, frame) in perl.iter().enumerate() {
        let name = frame.name.strip_prefix("T::").filter(|name| !name.starts_with('_'));
        let Some((letter, k)) = name.and_then(|name| name.split_once('_')) else {
            let is_known = frame.name.starts_with("main") || frame.name == "(eval)";
            // Evals within a family, and what it calls of the program.
            // A format has no line of its own before its first one runs.
            let is_begun = at < last || !frame.name.starts_with("T::_form_");
            if !is_known && is_begun && !frame.file.starts_with("family_") {
                return wrong(format!("{} is not of the program", frame.name));
            }
            continue;
        };
        if *family.get_or_insert(k) != k {
            return wrong("two families".into());
        }
        // The comparison of a sort is called by `g`, and calls `h`.
        if letter == "by" {
            depth = 3;
            continue;
        }
        let Some(place) = LINES.iter().position(|(name, ..)| *name == letter) else {
            return wrong(format!("unknown {}", frame.name));
        };
        let follows = place == depth || place == 0 && depth == 1 || place == 1 && depth == 0;
        if !follows {
            return wrong(format!("{} out of order", frame.name));
        }
        depth = place + 1;
        let (_, first, end) = LINES[place];
        // A sub that returns has no line.
        let is_line = (first..=end).contains(&frame.line) || frame.line == 0 && at == last;
        let is_inside = is_line && frame.file == format!("family_{k}.pl");
        match (is_inside, at == last) {
            (true, _) => {}
            (false, true) => return Some(Fault::Line),
            (false, false) => return wrong(format!("{} at {}:{}", frame.name, frame.file, frame.line)),
        }
    }
    None
}

/// Whether its innermost sub has no line.
fn returns(stack: &Stack) -> bool {
    stack.perl().last().is_some_and(|frame| frame.line == 0 && frame.name != "(eval)")
}

fn has_threads(perl: &Path) -> bool {
    let config = Command::new(perl).arg("-V:useithreads").output().expect("perl runs");
    String::from_utf8_lossy(&config.stdout).contains("'define'")
}

/// No stack that the program cannot have; nearly all are complete; all families are met.
fn expect_known_stacks(how: &str) {
    let least = std::env::var("STACKS_OF_PERL").map_or(LEAST, |text| text.parse().expect("a number"));
    for perl in interpreters("perl", "PERLS") {
        if how == "threads" && !has_threads(&perl) {
            println!("not run: {} has no threads", perl.display());
            continue;
        }
        let mut host = start(&perl, "known_stacks.pl", &[how]);
        let stacks = record_running(&host, least, |stack| stack.frames.len() > 1);
        host.tell("end");
        assert!(host.ended().success());
        let run = |stack: &Stack| stack.frames.iter().any(|frame| frame.name.starts_with("main::"));
        let with: Vec<&Stack> = stacks.iter().filter(|stack| run(stack)).collect();
        let what = format!("{how}, {}: {} of {} stacks", perl.display(), with.len(), stacks.len());
        let mut lines = 0;
        let mut wrong = vec![];
        for stack in &with {
            match fault(stack) {
                Some(Fault::Stack(why)) => wrong.push(format!("{why}: {}", stack.text())),
                Some(Fault::Line) => lines += 1,
                None => {}
            }
        }
        let uncertain = with.iter().filter(|stack| stack.text().contains("[native frames between")).count();
        let returns = with.iter().filter(|stack| returns(stack)).count();
        println!(
            "{what}, {} impossible, {lines} lines of another sub, {returns} without a line, {uncertain} uncertain",
            wrong.len()
        );
        assert!(stacks.len() >= least, "{what}");
        // Of few stacks some more may be so by chance.
        assert!(with.len() + 3 >= stacks.len() - stacks.len() / 50, "{what} have subs of Perl");
        assert!(wrong.is_empty(), "{what}, {} impossible: {:#?}", wrong.len(), &wrong[..wrong.len().min(5)]);
        assert!(lines <= with.len() / 100 + 5, "{what}: {lines} lines of another sub");
        assert!(returns <= with.len() / 10 + 5, "{what}: {returns} without a line");
        assert!(uncertain <= with.len() / 200 + 3, "{what}: {uncertain} uncertain");
        let names: BTreeSet<&str> =
            stacks.iter().flat_map(Stack::perl).map(|frame| frame.name.as_str()).collect();
        let met = names.iter().filter(|name| name.starts_with("T::h_")).count();
        assert!(met > 2, "{what}: {met} families");
        let is_h = |stack: &&&Stack| stack.perl().last().is_some_and(|leaf| leaf.name.starts_with("T::h_"));
        let computing = with.iter().filter(is_h).count();
        assert!(computing > with.len() / 100, "{what}: {computing} where the work is");
    }
}

#[test]
fn no_stack_of_subs_that_call_each_other_is_impossible() {
    expect_known_stacks("plain");
}

#[test]
fn no_stack_below_a_deep_recursion_is_impossible() {
    expect_known_stacks("deep");
}

#[test]
fn no_stack_through_c_code_that_calls_back_is_impossible() {
    expect_known_stacks("first");
}

#[test]
fn no_stack_through_sorts_is_impossible() {
    expect_known_stacks("sort");
}

#[test]
fn no_stack_through_evals_is_impossible() {
    expect_known_stacks("evals");
}

/// Regression: the subs that such code called last were missing.
#[test]
fn no_stack_through_code_of_patterns_is_impossible() {
    expect_known_stacks("pattern");
}

/// Regression: such stacks had no subs at all.
#[test]
fn no_stack_through_formats_is_impossible() {
    expect_known_stacks("format");
}

/// Regression: BEGIN was missing, and all that it called.
#[test]
fn no_stack_through_what_is_run_while_code_is_compiled_is_impossible() {
    expect_known_stacks("begin");
}

#[test]
fn no_stack_of_subs_that_are_made_and_dropped_all_the_time_is_impossible() {
    expect_known_stacks("churn");
}

#[test]
fn no_stack_through_required_files_is_impossible() {
    expect_known_stacks("require");
}

/// Regression: after an error the run loops that C code has called have no contexts any more, and
/// destructors run. `computes` stood as called by DESTROY's caller, and `die` as called by it.
#[test]
fn what_runs_while_an_error_leaves_subs_is_in_its_place_or_marked() {
    const PROGRAM: &str = "
use List::Util 'first';
sub computes { my $t = 0; $t += $_ for 1 .. 2000; return $t }
sub Variable::DESTROY { main::computes() }
sub called { die qq(wrong\n) }
$| = 1; print qq(ready\n);
while (1) { eval { my $variable = bless [], 'Variable'; my $found = first { called() } 1; 1 } }
";
    for perl in interpreters("perl", "PERLS") {
        let mut command = Command::new(&perl);
        command.args(["-e", PROGRAM]);
        let host = start_command(command);
        let stacks = record_running(&host, LEAST, |stack| stack.frames.len() > 1);
        expect_nothing_called_by("main::computes", "Perl_die_unwind", &stacks, &perl);
    }
}

#[test]
fn no_stack_of_two_threads_is_impossible() {
    expect_known_stacks("threads");
}

/// Regression: the C library's data of a thread was looked for with a key of the agent's own, and
/// from the 33rd key on it is elsewhere. Perls with threads were not read in such programs.
#[test]
fn subs_have_names_in_a_program_with_many_keys() {
    let directory = Directory::new();
    let [source, library] = ["many_keys.c", "many_keys.so"].map(|name| directory.path().join(name));
    let keys = "#include <pthread.h>\n\
        __attribute__((constructor)) static void make(void)\n\
        { pthread_key_t key; for (int i = 0; i < 40; i++) pthread_key_create(&key, 0); }\n";
    std::fs::write(&source, keys).expect("it can be written");
    compile(&source, &library, &["-shared", "-fPIC", "-pthread"].map(str::to_string), &[]);
    for perl in interpreters("perl", "PERLS") {
        let mut host = start(&perl, "many_keys.pl", &[library.to_str().expect("a path")]);
        let stacks = record_running(&host, LEAST / 10, |stack| stack.frames.len() > 2);
        host.tell("end");
        assert!(host.ended().success());
        let named = stacks.iter().filter(|stack| stack.perl().any(|it| it.name == "main::computes"));
        let (named, all) = (named.count(), stacks.len());
        assert!(named * 10 > all * 9, "{named} of {all}: {}", perl.display());
    }
}

/// The subs of `many_subs.pl` in stacks that have reached what computes there, outermost first.
fn stacks_of_many_subs(perl: &Path, how: &str) -> Vec<Vec<String>> {
    let mut host = start(perl, "many_subs.pl", &[how]);
    let computes = |stack: &Stack| stack.perl().any(|frame| frame.name == "main::computes");
    let stacks = record_running(&host, LEAST, computes);
    host.tell("end");
    assert!(host.ended().success());
    stacks.iter().map(|stack| stack.perl().map(|frame| frame.name.clone()).collect()).collect()
}

/// Regression: of stacks of more than 26 subs of real programs the outer half was missing. A sub
/// that was read before is recognised, and need not be read again.
#[test]
fn stacks_of_many_different_subs_are_complete() {
    for perl in interpreters("perl", "PERLS") {
        let stacks = stacks_of_many_subs(&perl, "deep");
        let whole = stacks.iter().filter(|subs| subs.len() == 122 && subs[0] == "main").count();
        // The first ones are read in several samples.
        assert!(whole * 10 > stacks.len() * 9, "{whole} of {}: {}", stacks.len(), perl.display());
    }
}

#[test]
fn closures_and_the_subs_of_each_thread_have_their_own_names() {
    for (perl, how) in interpreters("perl", "PERLS").into_iter().flat_map(|perl| {
        let threads = has_threads(&perl).then(|| (perl.clone(), "threads"));
        [Some((perl, "renamed")), threads].into_iter().flatten()
    }) {
        let stacks = stacks_of_many_subs(&perl, how);
        let number = |subs: &[String], prefix: &str| {
            subs.iter().find_map(|name| name.strip_prefix(prefix).map(str::to_owned))
        };
        for subs in &stacks {
            let [closure, called] = ["Named::closure_", "main::called_"].map(|prefix| number(subs, prefix));
            let nameless = subs.iter().any(|name| name == "main::__ANON__").then(|| "0".to_owned());
            assert!(called.is_some() && closure.or(nameless) == called, "{subs:?}: {}", perl.display());
        }
    }
}

#[test]
fn stacks_of_a_blocked_program_are_those_that_perl_itself_sees() {
    for perl in interpreters("perl", "PERLS") {
        at_points(&perl, "barriers.pl", "perl", |stack, seen, reported| {
            assert_eq!(seen, reported, "{}: {}", perl.display(), stack.text());
            expect_order(stack);
        });
    }
}

/// C code that calls back is between the sub that called it and the one that it calls.
fn expect_order(stack: &Stack) {
    let frames: Vec<&Frame> = stack.frames.iter().collect();
    for (at, frame) in frames.iter().enumerate() {
        if frame.name.contains("Perl_pp_sort") || frame.name.contains("Util.so") {
            let caller = frames[..at].iter().rfind(|frame| frame.kind == "perl").expect("a caller");
            assert!(caller.name.contains("main::__ANON__") || caller.name == "(eval)", "{}", stack.text());
            let called = frames[at..].iter().find(|frame| frame.kind == "perl").expect("the called function");
            let names = ["main::__ANON__", "main::by_path", "main::step", "(eval)"];
            assert!(names.contains(&called.name.as_str()), "{}", stack.text());
        }
    }
}
