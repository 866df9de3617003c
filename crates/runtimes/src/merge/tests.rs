use super::*;

/// The evaluator is at 100..200, in an object at 0..1000; native code is above.
fn merged(native: &[u64], entries: &[bool], is_complete: bool, is_cut: bool) -> (String, bool) {
    let code = RuntimeCode { evaluator: 100..200, object: 0..1000, ..RuntimeCode::default() };
    merged_by(&code, Parts { native, is_complete, entries, is_cut, gap: None })
}

fn merged_by(code: &RuntimeCode, parts: Parts<'_>) -> (String, bool) {
    let (native, merged) = (parts.native, merge(parts, code));
    let text = |place: &Place| match place {
        Place::Native(at) => format!("{}", native[*at]),
        Place::Interpreted(at) => ["f", "g", "h", "i"][*at].to_owned(),
    };
    let places: Vec<String> = merged.places.iter().rev().map(text).collect();
    (places.join(" "), merged.is_uncertain)
}

#[test]
fn each_segment_takes_the_place_of_its_native_call() {
    let sure = |text: &str| (text.to_owned(), false);
    // qsort (2000) calls back: machinery (300) between the segments is hidden, 2000 is not.
    let native = [150, 300, 2000, 300, 150, 300, 400];
    assert_eq!(merged(&native, &[false, true, true], true, false), sure("400 300 h 2000 g f"));
    // What the interpreter does for the leaf is shown.
    assert_eq!(merged(&[500, 150, 400], &[false, true], true, false), sure("400 g f 500"));
    assert_eq!(merged(&[500, 400], &[], true, false), sure("400 500"));
}

#[test]
fn an_evaluator_without_a_frame_yet_is_left_out() {
    let native = [150, 300, 150, 400];
    assert_eq!(merged(&native, &[false, true], true, false).0, "400 g f 300");
}

/// Regression: what had called a callback that returns stood outside of the program.
#[test]
fn an_evaluator_that_frees_its_frames_variables_is_left_out() {
    let native = [500, 150, 2000, 150, 300, 400];
    let merged = merged(&native, &[false, true], true, false);
    assert_eq!(merged, ("400 300 g f 2000 500".to_owned(), false));
}

/// A segment may have no function: then its call has none.
#[test]
fn an_outer_evaluator_may_have_no_frame_any_more() {
    let native = [500, 150, 2000, 300, 150, 300, 150, 400];
    let merged = merged(&native, &[true, true, true], true, false);
    assert_eq!(merged, ("400 h g 2000 f 500".to_owned(), false));
}

/// Regression: a destructor that PHP runs while a callback is left stood as called by what it calls
/// itself.
#[test]
fn which_of_two_evaluators_has_no_frame_is_not_known_where_values_are_freed_between_them() {
    let freeing = [600..610, 0..0, 0..0];
    let (evaluator, object, calling) = (100..200, 0..1000, 610..620);
    let code = RuntimeCode { evaluator, object, freeing, calling, ..RuntimeCode::default() };
    let merged = |native| {
        let entries = &[true, true];
        merged_by(&code, Parts { native, is_complete: true, entries, is_cut: false, gap: None })
    };
    assert_eq!(merged(&[500, 150, 2000, 605, 150, 150, 400]), ("400 2000 g f 500".to_owned(), true));
    // Its own variables, and those of the outermost.
    let known = ("400 g 2000 f 300 605".to_owned(), false);
    assert_eq!(merged(&[605, 150, 300, 150, 2000, 150, 400]), known);
    assert!(!merged(&[605, 150, 150, 2000, 150, 605, 400]).1);
    // Regression, 1 of 907 samples: the innermost function has no evaluator yet.
    assert_eq!(merged(&[500, 615, 150, 605, 150, 400]), ("400 g f 615 500".to_owned(), true));
    assert!(!merged(&[500, 150, 605, 150, 400]).1 && !merged(&[500, 615, 150, 150, 400]).1);
}

#[test]
fn where_calls_and_segments_do_not_match_no_frame_is_lost_and_the_stack_is_marked() {
    let native = [500, 150, 2000, 150, 300, 150, 400];
    assert_eq!(merged(&native, &[true], true, false), ("400 2000 f 500".to_owned(), true));
    assert_eq!(merged(&[500, 150, 400], &[true, true], true, false), ("400 g f 500".to_owned(), true));
}

#[test]
fn what_was_cut_on_either_side_stays_in_order_from_the_leaf() {
    let entries = [true, true, true];
    assert_eq!(merged(&[150, 2000, 150], &entries, false, false).0, "h g 2000 f");
    assert_eq!(merged(&[150, 2000, 150, 400, 150, 400], &entries[..2], true, true).0, "400 150 400 g 2000 f");
}

/// Regression: the outermost functions stood outside of the thread's first native frame.
#[test]
fn around_frames_that_were_left_out_each_end_of_the_chain_has_its_own_calls() {
    let code = RuntimeCode { evaluator: 100..200, object: 0..1000, ..RuntimeCode::default() };
    let native = [150, 300, 2000, 150, 400];
    let parts =
        |is_cut| Parts { native: &native, is_complete: true, entries: &[true; 4], is_cut, gap: Some(2) };
    assert_eq!(merged_by(&code, parts(false)), ("400 i 2000 h g 300 f".to_owned(), false));
    assert_eq!(merged_by(&code, parts(true)).0, "400 150 2000 i h g 300 f");
}

#[test]
fn a_frame_of_perl_may_wait_for_its_call_and_the_outermost_may_have_none() {
    let (object, evaluator, root, shown) = (0..1000, 100..200, 400..500, 300..310);
    let cold_part = 0..0;
    let language = RuntimeLanguage::Perl;
    let inner = Default::default();
    let freeing = Default::default();
    let perl =
        RuntimeCode { evaluator, cold_part, inner, object, language, root, shown, freeing, calling: 0..0 };
    let parts = |native, entries| Parts { native, is_complete: true, entries, is_cut: false, gap: None };
    // A sort (300) compares.
    let comparing = parts(&[150, 300, 150, 400], &[true, false, true]);
    assert_eq!(merged_by(&perl, comparing), ("400 h g 300 f".to_owned(), false));
    let moving = parts(&[300, 150, 400], &[true, false, true]);
    assert_eq!(merged_by(&perl, moving), ("400 h g 300".to_owned(), false));
    // Regression: DESTROY and what it calls were missing where a sort's block had been left.
    let leaves = parts(&[300, 150, 310, 150, 400], &[false, true, true, true]);
    assert_eq!(merged_by(&perl, leaves), ("400 i h g f 300".to_owned(), true));
    // A host (2000) calls a function, outside of the program's own run.
    let called = parts(&[150, 2000], &[true, true]);
    assert_eq!(merged_by(&perl, called), ("2000 g f".to_owned(), false));
}

#[test]
fn a_call_of_ruby_is_two_functions_and_a_thread_may_begin_with_a_function_of_c() {
    let ruby = RuntimeCode {
        evaluator: 100..200,
        inner: [500..600, 0..0],
        object: 0..1000,
        language: RuntimeLanguage::Ruby,
        ..RuntimeCode::default()
    };
    let parts = |native, entries| Parts { native, is_complete: true, entries, is_cut: false, gap: None };
    let called = parts(&[550, 150, 2000, 300, 550, 150, 400], &[true, false, true]);
    assert_eq!(merged_by(&ruby, called), ("400 h g 2000 f".to_owned(), false));
    // An exception is caught: the inner function was left.
    let caught = parts(&[300, 150, 400], &[false, true]);
    assert_eq!(merged_by(&ruby, caught), ("400 g f 300".to_owned(), false));
    let of_c = parts(&[300, 400], &[false, false]);
    assert_eq!(merged_by(&ruby, of_c), ("g f 400 300".to_owned(), false));
    let started = parts(&[300, 550, 150, 300, 400], &[true, false]);
    assert_eq!(merged_by(&ruby, started), ("400 300 g f 300".to_owned(), false));
}

/// CPython's `--with-tail-call-interp`: the evaluator calls nothing but functions of instructions.
#[test]
fn functions_of_instructions_are_part_of_the_evaluator_that_calls_them() {
    let python = RuntimeCode {
        evaluator: 100..110,
        inner: [0..1000, 0..0],
        object: 0..1000,
        ..RuntimeCode::default()
    };
    let parts = |native, entries| Parts { native, is_complete: true, entries, is_cut: false, gap: None };
    let computes = parts(&[300, 105, 400], &[false, true]);
    assert_eq!(merged_by(&python, computes), ("400 g f".to_owned(), false));
    // What an instruction calls stays, and a callback of another object's code, too.
    let calls = parts(&[500, 300, 105, 2000, 310, 105, 400], &[true, true]);
    assert_eq!(merged_by(&python, calls), ("400 g 2000 f 500".to_owned(), false));
}
