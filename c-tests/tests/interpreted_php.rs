//! Functions of PHP between native frames: programs of which every possible stack is known, and
//! points at which PHP itself says what its stack is. PHPs besides the installed one are tried if
//! the variable `PHPS` names them, and more stacks if `STACKS_OF_PHP` says how many.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use swipr_c_tests::interpreted::{
    Frame, Stack, at_points, expect_300_functions, expect_nothing_called_by, interpreters, record_running,
    start, start_command, start_with,
};

/// Stacks of each program, at least.
const LEAST: usize = 300;
/// Lines of the functions of a family, in the order of calls, and how far apart families are.
const LINES: [(&str, u64, u64); 4] = [("r", 2, 3), ("f", 5, 8), ("g", 10, 12), ("h", 14, 18)];
const OF_FAMILY: u64 = 40;

/// What is wrong with a stack, if the program cannot have it.
fn fault(stack: &Stack, how: &str) -> Option<String> {
    let php: Vec<&Frame> = stack.php().collect();
    // The stack of a fiber is its own.
    let is_of_fiber = how == "fibers" && php[0].name.starts_with("f_");
    if !is_of_fiber && (php[0].name != "{main}" || !php[0].file.ends_with("known_stacks.php")) {
        return Some("another root".into());
    }
    let (mut family, mut depth) = (None, 0);
    for frame in &php {
        let is_evaluated = frame.file.ends_with("eval()'d code");
        // What the program calls and what it is made of; files, comparisons, functions of C.
        let is_own = ["run", "family", "{main}", "include", "eval"].contains(&frame.name.as_str());
        if is_own || !is_evaluated && frame.file.is_empty() {
            continue;
        }
        if !is_evaluated {
            return Some(format!("{} is not of the program", frame.name));
        }
        let Some(lines) = frame.line.checked_sub(1) else {
            return Some(format!("{} has no line", frame.name));
        };
        let (k, line) = (lines / OF_FAMILY, lines % OF_FAMILY + 1);
        let Some(place) = LINES.iter().position(|(_, first, last)| (*first..=*last).contains(&line)) else {
            return Some(format!("{} at line {}", frame.name, frame.line));
        };
        let letter = LINES[place].0;
        // A comparison of a sort is written in `g`.
        let is_closure = frame.name.starts_with("{closure");
        let expected = match how {
            "methods" => format!("T_{k}::{letter}"),
            _ => format!("{letter}_{k}"),
        };
        if if is_closure { how != "churn" && letter != "g" } else { frame.name != expected } {
            return Some(format!("{} at line {}", frame.name, frame.line));
        }
        if *family.get_or_insert(k) != k {
            return Some("two families".into());
        }
        let is_comparison = is_closure && how == "callbacks" && depth == 3;
        let follows = place == depth || place == 0 && depth == 1 || place == 1 && depth == 0;
        if !follows && !is_comparison {
            return Some(format!("{} out of order", frame.name));
        }
        depth = place + 1;
    }
    None
}

fn has_fibers(interpreter: &Path) -> bool {
    let asked = Command::new(interpreter).args(["-r", "exit((int)!class_exists('Fiber'));"]).status();
    asked.expect("php runs").success()
}

/// No stack that the program cannot have; nearly all are complete; all families are met.
fn expect_known_stacks(how: &str) {
    let least = std::env::var("STACKS_OF_PHP").map_or(LEAST, |text| text.parse().expect("a number"));
    for interpreter in interpreters("php", "PHPS") {
        if how == "fibers" && !has_fibers(&interpreter) {
            println!("not run: {} has no fibers", interpreter.display());
            continue;
        }
        let mut host = start(&interpreter, "known_stacks.php", &[how]);
        // On the stack of a fiber that begins there is no function yet.
        let begins = |stack: &Stack| stack.frames[0].name == "make_fcontext" && stack.php().next().is_none();
        let stacks = record_running(&host, least, |stack| stack.frames.len() > 1 && !begins(stack));
        host.tell("end");
        assert!(host.ended().success());
        let with: Vec<&Stack> = stacks.iter().filter(|stack| stack.php().next().is_some()).collect();
        let wrong =
            with.iter().filter_map(|stack| fault(stack, how).map(|why| format!("{why}: {}", stack.text())));
        let wrong: Vec<String> = wrong.collect();
        let uncertain = with.iter().filter(|stack| stack.text().contains("[native frames between")).count();
        let what = format!("{how}, {}: {} of {} stacks", interpreter.display(), with.len(), stacks.len());
        println!("{what}, {} impossible, {uncertain} uncertain", wrong.len());
        assert!(stacks.len() >= least, "{what}");
        assert!(with.len() + 3 >= stacks.len() - stacks.len() / 100, "{what} have functions of PHP");
        assert!(wrong.is_empty(), "{what}, {} impossible: {:#?}", wrong.len(), &wrong[..wrong.len().min(5)]);
        assert!(uncertain <= with.len() / 200 + 3, "{what}: {uncertain} uncertain");
        let families =
            |frame: &Frame| frame.file.ends_with("eval()'d code").then_some(frame.line / OF_FAMILY);
        let met: BTreeSet<u64> = stacks.iter().flat_map(Stack::php).filter_map(families).collect();
        assert!(met.len() > 2, "{what}: {} families", met.len());
    }
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
fn no_stack_through_callbacks_of_c_is_impossible() {
    expect_known_stacks("callbacks");
}

#[test]
fn no_stack_below_a_deep_recursion_is_impossible() {
    expect_known_stacks("deep");
}

#[test]
fn no_stack_of_functions_that_throw_is_impossible() {
    expect_known_stacks("exceptions");
}

/// Regression: two functions of a fiber were left out, and the fiber's beginning was shown as
/// `include`.
#[test]
fn no_stack_of_fibers_is_impossible() {
    expect_known_stacks("fibers");
}

#[test]
fn no_stack_of_generators_is_impossible() {
    expect_known_stacks("generators");
}

#[test]
fn no_stack_through_included_files_is_impossible() {
    expect_known_stacks("includes");
}

#[test]
fn no_stack_of_closures_that_are_made_and_dropped_all_the_time_is_impossible() {
    expect_known_stacks("churn");
}

/// Regression: a function that C code called has no frame any more when its variables are freed. In
/// 99 % of the samples of this program `compare` stood as called by the destructor, and usort's own
/// functions as called by `compare`.
#[test]
fn what_runs_while_a_callback_is_left_is_in_its_place_or_marked() {
    const PROGRAM: &str = "
function compare($a, $b) { for ($i = 0; $i < 3000; $i++); return 0; }
class Variable { function __destruct() { $all = [4, 3, 2, 1]; usort($all, 'compare'); } }
function called($x) { $variable = new Variable; }
function main() { while (true) array_map('called', [1, 2, 3]); }
echo \"ready\n\";
main();
";
    for interpreter in interpreters("php", "PHPS") {
        let mut command = Command::new(&interpreter);
        command.args(["-n", "-r", PROGRAM]);
        let host = start_command(command);
        let stacks = record_running(&host, LEAST, |stack| stack.frames.len() > 1);
        expect_nothing_called_by("compare", "zend_call_function", &stacks, &interpreter);
    }
}

/// Regression: 8.3 and later had no functions of PHP in whole stacks of compiled code.
#[test]
fn functions_that_php_compiled_are_in_the_order_of_their_calls() {
    for interpreter in interpreters("php", "PHPS") {
        let compiles = [
            "-dopcache.enable_cli=1",
            "-dopcache.jit_buffer_size=32M",
            "-dopcache.jit=tracing",
            "-dopcache.jit_debug=0",
        ];
        let mut host = start_with(&interpreter, &compiles, "compiled.php", &[], &[]);
        let stacks = record_running(&host, LEAST, |stack| stack.frames.len() > 1);
        host.tell("end");
        assert!(host.ended().success());
        let order = |stack: &Stack| -> Vec<String> {
            let name = |frame: &Frame| frame.name.split(':').next().unwrap_or_default().replace('}', "");
            stack.php().map(name).collect()
        };
        let known = ["{main", "outer", "array_map", "{closure", "inner"];
        let is_whole = |stack: &&Stack| order(stack) == known;
        let whole = stacks.iter().filter(is_whole).count();
        let what = format!("{}: {whole} of {} stacks", interpreter.display(), stacks.len());
        println!("{what}");
        let others = stacks.iter().find(|stack| {
            let order = order(stack);
            let builtin = |name: &String| ["max", "fgets"].contains(&name.as_str());
            let order: Vec<&String> = order.iter().filter(|name| !builtin(name)).collect();
            !order.iter().zip(known).all(|(seen, known)| *seen == known) || order.len() > known.len()
        });
        assert!(others.is_none(), "{what}: {}", others.map_or(String::new(), Stack::text));
        assert!(whole > stacks.len() * 9 / 10, "{what}");
    }
}

/// Regression: of stacks of more than 80 to 150 different functions the outer part was missing.
#[test]
fn stacks_of_many_different_functions_are_complete() {
    for interpreter in interpreters("php", "PHPS") {
        let host = start_with(&interpreter, &[], "many_functions.php", &[], &[]);
        expect_300_functions(host, LEAST, &interpreter);
    }
}

#[test]
fn stacks_of_a_blocked_program_are_those_that_php_itself_sees() {
    for interpreter in interpreters("php", "PHPS") {
        at_points(&interpreter, "barriers.php", "php", |stack, seen, reported| {
            let (leaf, rest) = seen.split_first().expect("functions");
            assert_eq!(leaf, "fgets||0", "{}", stack.text());
            assert_eq!(rest, reported, "{}: {}", interpreter.display(), stack.text());
        });
    }
}
