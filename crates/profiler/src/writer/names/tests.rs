use super::*;
use crate::mappings::Tables;
use swipr_symbols::symbolizer::Budget;

#[test]
fn when_the_time_is_used_up_frames_have_names_without_lines_and_are_counted() {
    swipr_unwind::memory::set_process(process::pid() as i32);
    let mut tables = Tables::new(-1);
    tables.refresh();
    let here = when_the_time_is_used_up_frames_have_names_without_lines_and_are_counted as *const () as u64;
    let sources = NameSources {
        symbolizer: Arc::new(Mutex::new(Symbolizer::new(Budget::default()))),
        jit_code: Arc::new(Mutex::new(JitCode::new(1 << 20))),
        latest: Arc::default(),
        clock: EpochClock::now(),
    };
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
