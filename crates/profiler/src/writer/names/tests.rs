use super::*;
use crate::mappings::Tables;
use std::sync::atomic::AtomicU64;
use swipr_symbols::symbolizer::Budget;
use swipr_unwind::frames::{CAPACITY, Storage};

fn sources() -> NameSources {
    NameSources {
        symbolizer: Arc::new(Mutex::new(Symbolizer::new(Budget::default()))),
        jit_code: Arc::new(Mutex::new(JitCode::new(1 << 20))),
        latest: Arc::default(),
        clock: EpochClock::now(),
    }
}

/// Regression: each stack in the caches had its own copy of all mappings while a JIT compiler
/// changed them: of 4,000 mappings 1.3 GB.
#[test]
fn stacks_do_not_keep_many_old_mappings() {
    let mut names = StackSymbolizer::new(sources(), Symbolize::Never, ShownFrames::Merged, Duration::ZERO);
    let storage: Box<Storage> = Box::new([const { AtomicU64::new(0) }; CAPACITY]);
    let bytes = Mappings::of_size(4000).bytes();
    let stacks = (0..1040).map(|_| {
        let mappings = Arc::new(Mappings::of_size(4000));
        names.of(&Arc::new(RawStack::new(&storage, 1, Stop::Root, &mappings, Default::default())), 0);
        Arc::downgrade(&mappings)
    });
    let mappings: Vec<_> = stacks.collect();
    let kept = mappings.iter().filter(|mappings| mappings.strong_count() > 0).count();
    assert!(kept * bytes < 2 * MAX_MAPPINGS_BYTES, "{kept} of {bytes} bytes each");
    assert!(kept > 10, "those of some stacks are: {kept} of {bytes} bytes each");
}

#[test]
fn when_the_time_is_used_up_frames_have_names_without_lines_and_are_counted() {
    swipr_unwind::memory::set_process(process::pid() as i32);
    let mut tables = Tables::new(-1);
    tables.refresh();
    let here = when_the_time_is_used_up_frames_have_names_without_lines_and_are_counted as *const () as u64;
    let sources = sources();
    let named = |at_most| {
        let mut names = StackSymbolizer::new(sources.clone(), Symbolize::Now, ShownFrames::Merged, at_most);
        let frame = names.frame(tables.mappings(), CodeAddress { address: here, exact: true }).unwrap();
        let function = frame.functions.last().unwrap().clone();
        assert!(function.name.contains("when_the_time_is_used_up"), "{function:?}");
        (function.line.is_some(), names.without_lines())
    };
    for _ in 0..2 {
        assert_eq!(named(Duration::ZERO), (false, 1));
        assert_eq!(named(Duration::from_secs(3600)), (true, 0));
    }
}
