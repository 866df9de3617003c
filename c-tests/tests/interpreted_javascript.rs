//! Functions of JavaScript between native frames: programs of which every possible stack is known,
//! and points at which V8 itself says what its stack is. Other Node.js besides the installed one
//! are tried if the variable `NODES` names them, and more stacks if `STACKS_OF_JAVASCRIPT` says how
//! many.

use std::collections::BTreeSet;
use swipr_c_tests::interpreted::{Frame, Stack, at_points, interpreters, record, record_running, start_with};

/// Stacks of each program, at least.
const LEAST: usize = 300;
/// The first and the last lines of a family's functions, in the order of calls, and how far apart
/// families are. The last two are callbacks.
const LINES: [(&str, [u64; 2]); 5] =
    [("r", [2, 3]), ("f", [5, 8]), ("g", [9, 11]), ("c", [10, 10]), ("h", [13, 17])];
const OF_FAMILY: u64 = 40;

/// The place of a function in the order of calls, and its family. `None`: it is none of a family.
fn place(frame: &Frame, how: &str) -> Option<Result<(usize, u64), String>> {
    let is_dropped = frame.file.starts_with("family_");
    if !frame.file.contains("/families.") && !is_dropped {
        return None;
    }
    if frame.name.starts_with("<anonymous>") {
        return Some(Err("the file itself".into())).filter(|_| !is_dropped || frame.line != 0);
    }
    let wrong = || Err(format!("{} {}:{}", frame.name, frame.file, frame.line));
    if how == "methods" {
        let (k, line) = ((frame.line.max(1) - 1) / OF_FAMILY, (frame.line.max(1) - 1) % OF_FAMILY + 1);
        let class = format!("T_{k}");
        let of_class =
            [("f", [5, 8]), ("get x", [1, 1]), ("g", [9, 11]), ("h", [13, 17]), (class.as_str(), [1, 1])];
        let is_it = |(name, [first, last]): &(&str, [u64; 2])| {
            *name == frame.name && (*first..=*last).contains(&line)
        };
        let found = of_class.iter().position(is_it);
        return Some(found.map_or_else(wrong, |at| Ok((at, k))));
    }
    let Some((letter, k)) = frame.name.split_once('_') else { return Some(wrong()) };
    let (Ok(k), Some(at)) = (k.parse::<u64>(), LINES.iter().position(|(name, _)| *name == letter)) else {
        return Some(wrong());
    };
    let is_right = match is_dropped {
        true => frame.file == format!("family_{k}.js") && frame.line == 0,
        false => (LINES[at].1[0]..=LINES[at].1[1]).contains(&(frame.line.wrapping_sub(OF_FAMILY * k))),
    };
    Some(if is_right { Ok((at, k)) } else { wrong() })
}

/// What is wrong with a stack, if the program cannot have it.
fn fault(stack: &Stack, how: &str) -> Option<String> {
    let (mut family, mut last) = (None, None);
    for frame in stack.javascript() {
        let is_own = frame.file.ends_with("known_stacks.js") || frame.file.starts_with("node:");
        let (at, k) = match place(frame, how) {
            None if is_own || frame.file.starts_with("family_") => continue,
            None => return Some(format!("{} is not of the program", frame.name)),
            Some(Err(why)) => return Some(why),
            Some(Ok(found)) => found,
        };
        if *family.get_or_insert(k) != k {
            return Some("two families".into());
        }
        let follows = match (how, last) {
            // A getter calls the last one, too; the first one makes an object.
            ("methods", last) => {
                matches!((last, at), (None, 0) | (Some(0), 2 | 4) | (Some(2), 1 | 3) | (Some(1), 3))
            }
            // From 40 levels on: those that the list holds.
            ("deep" | "deepest", None) => at == 0,
            ("deep" | "deepest", Some(0)) => at <= 1,
            (_, None) => at == 1,
            ("callbacks", Some(2)) => at == 3,
            (_, Some(2)) => at == 4,
            (_, Some(last)) => at == last + 1,
        };
        if !follows {
            return Some(format!("{} out of order", frame.name));
        }
        last = Some(at);
    }
    None
}

/// Native code that a function of JavaScript runs, without that function.
fn is_unnamed(frame: &Frame) -> bool {
    frame.kind == "jit" && frame.name.is_empty() || frame.name.starts_with("Builtins_InterpreterEntry")
}

/// No stack that the program cannot have; nearly all are complete; all families are met.
fn expect_known_stacks(how: &str) {
    expect_known_stacks_with(how, &[]);
}

fn expect_known_stacks_with(how: &str, flags: &[&str]) {
    let least = std::env::var("STACKS_OF_JAVASCRIPT").map_or(LEAST, |text| text.parse().expect("a number"));
    for interpreter in interpreters("node", "NODES") {
        let mut host = start_with(&interpreter, flags, "known_stacks.js", &[how], &[]);
        let runs = |stack: &Stack| stack.javascript().next().is_some() || stack.frames.iter().any(is_unnamed);
        let stacks = record_running(&host, least, |stack| stack.frames.len() > 1 && runs(stack));
        host.tell("end");
        assert!(host.ended().success());
        let with: Vec<&Stack> = stacks.iter().filter(|stack| stack.javascript().next().is_some()).collect();
        let wrong =
            with.iter().filter_map(|stack| fault(stack, how).map(|why| format!("{why}: {}", stack.text())));
        let wrong: Vec<String> = wrong.collect();
        let partly: Vec<&Stack> = stacks.iter().filter(|stack| stack.frames.iter().any(is_unnamed)).collect();
        let cut = stacks.iter().filter(|stack| stack.text().contains("[outer interpreted")).count();
        let what = format!("{how}, {}: {} of {} stacks", interpreter.display(), with.len(), stacks.len());
        println!("{what}, {} impossible, {} with unnamed functions, {cut} cut", wrong.len(), partly.len());
        assert!(stacks.len() >= least, "{what}");
        assert!(wrong.is_empty(), "{what}, {} impossible: {:#?}", wrong.len(), &wrong[..wrong.len().min(5)]);
        let text = |stack: &&Stack| stack.text();
        let some: Vec<String> = partly.iter().take(3).map(text).collect();
        assert!(partly.len() <= stacks.len() / 100 + 3, "{what}, {} partly unnamed: {some:#?}", partly.len());
        let family = |frame: &Frame| place(frame, how).and_then(Result::ok).map(|(_, k)| k);
        let met: BTreeSet<u64> = stacks.iter().flat_map(Stack::javascript).filter_map(family).collect();
        assert!(met.len() > 2, "{what}: {} families", met.len());
        let leaves = stacks.iter().filter_map(|stack| stack.javascript().last());
        let leaves: BTreeSet<usize> =
            leaves.filter_map(|frame| place(frame, how)?.ok().map(|(at, _)| at)).collect();
        let last = if how == "methods" { 3 } else { 4 };
        assert!(how == "deepest" || leaves.contains(&last), "{what}: leaves {leaves:?}");
    }
}

/// Regression: rows that were read of the builtins' own instructions hid where V8's frames lie.
#[test]
fn stacks_through_builtins_are_whole_however_often_they_were_met() {
    for interpreter in interpreters("node", "NODES") {
        let mut host = start_with(
            &interpreter,
            &["--no-opt", "--no-sparkplug", "--regexp-interpret-all"],
            "builtins.js",
            &[],
            &[],
        );
        let has_outer = |stack: &Stack| stack.javascript().any(|frame| frame.name == "outer");
        let stacks =
            record_running(&host, 1500, |stack| has_outer(stack) || stack.text().contains("[truncated"));
        host.tell("end");
        assert!(host.ended().success());
        let cut: Vec<String> = stacks.iter().filter(|stack| !has_outer(stack)).map(Stack::text).collect();
        let what = format!("{}: {} of {}", interpreter.display(), cut.len(), stacks.len());
        assert!(stacks.len() >= 1500 && cut.len() <= stacks.len() / 500, "{what}: {:#?}", cut.first());
    }
}

#[test]
fn no_stack_of_functions_that_call_each_other_is_impossible() {
    expect_known_stacks("plain");
}

#[test]
fn no_stack_with_inlined_functions_is_impossible() {
    expect_known_stacks("inlined");
}

#[test]
fn no_stack_of_interpreted_functions_is_impossible() {
    expect_known_stacks_with("exceptions", &["--no-opt", "--no-sparkplug"]);
}

#[test]
fn no_stack_of_baseline_code_is_impossible() {
    expect_known_stacks_with("generators", &["--always-sparkplug", "--no-opt"]);
}

#[test]
fn no_stack_of_methods_is_impossible() {
    expect_known_stacks("methods");
}

#[test]
fn no_stack_through_callbacks_is_impossible() {
    expect_known_stacks("callbacks");
}

#[test]
fn no_stack_below_a_deep_recursion_is_impossible() {
    expect_known_stacks("deep");
}

#[test]
fn no_stack_below_the_deepest_recursion_is_impossible() {
    expect_known_stacks("deepest");
}

#[test]
fn no_stack_of_functions_that_throw_is_impossible() {
    expect_known_stacks("exceptions");
}

#[test]
fn no_stack_of_generators_is_impossible() {
    expect_known_stacks("generators");
}

#[test]
fn no_stack_of_asynchronous_functions_is_impossible() {
    expect_known_stacks("async");
}

#[test]
fn no_stack_is_impossible_while_the_collector_moves_objects() {
    expect_known_stacks_with("collected", &["--expose-gc", "--compact-on-every-full-gc"]);
}

#[test]
fn no_stack_of_functions_that_are_made_and_dropped_all_the_time_is_impossible() {
    expect_known_stacks("churn");
}

#[test]
fn no_stack_of_worker_threads_is_impossible() {
    expect_known_stacks("workers");
}

/// Of each function of `inlined_shares.js`, how many of V8's own samples were on its lines.
const SHARES: [&str; 4] = ["three", "one", "middle", "outer"];

/// The share, and how far two counts of it may be apart: four times the deviation of both.
fn share_and_bound([here, all]: [usize; 2], [there, of]: [usize; 2]) -> (f64, f64) {
    let both = (here + there) as f64 / (all + of) as f64;
    let variance = both * (1.0 - both) * (1.0 / all as f64 + 1.0 / of as f64);
    (here as f64 / all as f64 - there as f64 / of as f64, 4.0 * variance.sqrt() + 0.002)
}

#[test]
fn inlined_functions_have_the_shares_that_v8_s_own_profiler_gives_their_lines() {
    for interpreter in interpreters("node", "NODES") {
        let mut host = start_with(&interpreter, &[], "inlined_shares.js", &[], &[]);
        let is_of = |frame: &&Frame| frame.file.ends_with("inlined_shares.js");
        // V8's profiler interrupts functions by a signal, too.
        let leaf = |stack: &Stack| {
            stack
                .frames
                .last()
                .filter(|frame| frame.kind == "javascript")
                .filter(is_of)
                .map(|frame| frame.name.clone())
        };
        let stacks = record_running(&host, 5 * LEAST, |stack| leaf(stack).is_some());
        host.tell("end");
        let ticks = host.wait_for("ticks ");
        assert!(host.ended().success());
        let ticks: Vec<usize> =
            ticks.split_whitespace().map(|count| count.parse().expect("a count")).collect();
        let leaves: Vec<String> = stacks.iter().filter_map(leaf).collect();
        let of = |name: &str| leaves.iter().filter(|leaf| *leaf == name).count();
        let counts: Vec<usize> = SHARES.iter().map(|name| of(name)).collect();
        let [here, there] = [counts.iter().sum(), ticks.iter().sum()];
        println!("{}: {counts:?}, V8: {ticks:?}", interpreter.display());
        for (at, name) in SHARES.iter().enumerate() {
            let (apart, bound) = share_and_bound([counts[at], here], [ticks[at], there]);
            assert!(apart.abs() <= bound, "{}: {name}: {apart} > {bound}", interpreter.display());
        }
        // By what the program does.
        let three = counts[0] as f64 / (counts[0] + counts[1]) as f64;
        assert!((three - 0.75).abs() < 0.05, "{}: {three}", interpreter.display());
        let wrong = stacks.iter().filter_map(|stack| inlined_fault(stack).map(|why| (why, stack.text())));
        let wrong: Vec<_> = wrong.collect();
        assert!(wrong.is_empty(), "{}: {:?}", interpreter.display(), &wrong[..wrong.len().min(5)]);
    }
}

/// What is wrong with a stack of `inlined_shares.js`.
fn inlined_fault(stack: &Stack) -> Option<&'static str> {
    let lines = [("outer", 27..=33), ("middle", 23..=25), ("three", 7..=13), ("one", 15..=21)];
    let own: Vec<usize> = (stack.javascript().filter(|frame| frame.file.ends_with("inlined_shares.js")))
        .filter_map(|frame| lines.iter().position(|(name, _)| *name == frame.name))
        .collect();
    let is_line = |frame: &Frame| {
        let function = lines.iter().find(|(name, _)| *name == frame.name);
        function.is_none_or(|(_, lines)| lines.contains(&frame.line))
    };
    if !stack.javascript().all(is_line) {
        return Some("a line of another function");
    }
    let chains: [&[usize]; 5] = [&[], &[0], &[0, 1], &[0, 1, 2], &[0, 1, 3]];
    (!chains.contains(&own.as_slice())).then_some("out of order")
}

/// Regression: after a second or two all time was the outer function's, at its first line.
#[test]
fn an_inlined_function_keeps_its_time_while_the_collector_moves_the_one_around_it() {
    for interpreter in interpreters("node", "NODES") {
        let mut host = start_with(&interpreter, &[], "inlined_moved.js", &[], &[]);
        let second = || record(&host, "seconds=1.2&hz=1000&source=preempt&mode=cpu");
        let [.., stacks] = [second(), second(), second()];
        assert!(host.ended().success());
        let innermost = stacks.iter().filter_map(|stack| stack.javascript().last());
        let leaves: Vec<&str> = innermost.map(|frame| frame.name.as_str()).collect();
        let burning = leaves.iter().filter(|leaf| **leaf == "burn").count();
        let what = format!("{}: {burning} of {} stacks", interpreter.display(), leaves.len());
        assert!(leaves.len() >= 50 && burning * 10 >= leaves.len() * 9, "{what}: {leaves:?}");
    }
}

#[test]
fn stacks_of_a_blocked_program_are_those_that_v8_itself_sees() {
    for interpreter in interpreters("node", "NODES") {
        at_points(&interpreter, "barriers.js", "javascript", |stack, seen, told| {
            let seen = seen.iter().map(|function| function.rsplit_once('|').expect("a line").0);
            // V8 says no place of functions without a name.
            let seen = seen.map(|function| match function.split_once('|') {
                Some((name, file)) if name.starts_with("<anonymous>") => format!("<anonymous>|{file}"),
                _ => function.to_owned(),
            });
            // What waits for standard input.
            let own = seen.skip_while(|function| !function.starts_with("step|"));
            let own: Vec<String> = own.collect();
            assert_eq!(own, told, "{}: {}", interpreter.display(), stack.text());
        });
    }
}
