//! Each hazard's program, run under the agent. Most say themselves what they expect. The tests
//! written out here are those in which the client, too, does something.

mod clock;
mod descriptors;
mod ends;
mod handler;
mod interface;
mod libraries;
mod preempt;
mod processes;

use std::collections::BTreeSet;
use swipr_c_tests::expectation::has_stack;
use swipr_c_tests::host::{self, Agent, Host, Start, wait_until};
use swipr_c_tests::http::Answer;
use swipr_c_tests::program::{Program, compiled, sources};
use swipr_c_tests::recording;

/// A program must end well by itself: otherwise its test would say nothing of the agent. Programs
/// hardly change, so this is a nightly check.
fn is_content_without_the_agent(program: &Program) {
    if !cfg!(feature = "nightly") {
        return;
    }
    Host::start_with(Start { program, arguments: &[], agent: Agent::Absent }).end();
}

/// One test for each program that says itself what it expects; it is tried without the agent, too.
macro_rules! programs {
    ($($test:ident => $name:literal,)*) => {
        $(#[test]
        fn $test() {
            let (_directory, program) = compiled($name);
            is_content_without_the_agent(&program);
            host::run(&program);
        })*
        /// The programs whose comments say what is expected.
        const TELLING: &[&str] = &[$($name),*];
    };
}

programs! {
    code_without_frame_pointers_is_walked_to_main => "no_frame_pointer",
    long_system_calls_and_forks_have_their_time => "long_calls",
    code_that_is_numbered_otherwise_than_it_lies_in_the_file_has_its_names => "numbered_otherwise",
    unoptimised_blocked_threads_have_complete_stacks => "o0_blocked",
    a_stack_of_5000_frames_keeps_both_its_ends => "deep_stack",
    each_of_2000_threads_is_seen => "many_threads",
    no_blocked_call_is_interrupted => "blocked_threads",
    no_thread_that_is_just_going_to_sleep_is_interrupted => "going_to_sleep",
    nobody_writes_below_the_stack_pointer_of_a_small_coroutine => "small_coroutine",
    no_time_out_of_a_socket_is_an_interrupt => "time_outs_of_sockets",
    who_waits_for_its_own_handlers_goes_on_when_they_have_run => "waits_for_handlers",
    threads_that_wait_are_cancelled => "cancelled_threads",
    errno_is_kept_across_samples => "errno_kept",
    vector_registers_and_red_zone_are_kept_across_samples => "fp_registers_kept",
    threads_that_wait_for_a_cpu_are_seen_to => "waiting_for_cpu",
    threads_that_come_and_go_are_no_danger => "thread_churn",
    rarely_running_threads_have_their_time_at_their_functions => "rarely_running_threads",
    threads_that_live_for_milliseconds_have_their_time_at_their_functions => "short_lived_threads",
    crowds_of_threads_have_their_running_time_in_wall_mode => "crowds_of_threads",
    a_sample_in_a_signal_handler_reaches_main => "signal_handler_stack",
    users_of_alternate_stacks_are_sampled => "alternate_stack",
    an_alternate_stack_of_several_threads_is_left_alone => "shared_alternate_stack",
    a_main_without_a_description_is_walked_through => "undescribed_main",
    a_thread_that_blocks_all_signals_is_seen_in_system_calls_and_nowhere_else => "signals_blocked",
    only_the_stack_in_use_is_read_as_if_it_were_sure => "stale_frame_pointer",
    who_waits_for_signals_gets_none_of_ours => "waits_for_signals",
    who_receives_signals_now_and_then_gets_none_of_ours => "receives_now_and_then",
    signals_that_all_threads_block_are_the_programs_to_take => "takes_all_signals",
    what_a_host_does_with_signals_is_what_it_has_set => "handlers_come_and_go",
    the_c_library_gets_the_signals_by_which_it_changes_the_user => "changes_user",
    cpu_mode_shows_only_what_runs => "cpu_and_wall",
    cpu_time_is_what_folded_stacks_count_in_cpu_mode => "light_threads",
    a_program_whose_executable_was_deleted_has_names => "deleted_executable",
    threads_that_outlive_the_first_one_have_names => "first_thread_ended",
    debug_information_nested_without_end_is_no_danger => "deep_debug_info",
    who_holds_locks_is_sampled_and_never_waited_for => "locks_held",
    functions_that_are_bound_at_their_first_call_have_callers => "lazy_binding",
    functions_that_are_marked_as_signal_frames_have_callers => "marked_as_signal_frames",
    memory_between_two_stacks_is_not_taken_for_the_threads_own => "memory_between_stacks",
    frames_relative_to_any_register_are_left => "frame_in_another_register",
    frames_relative_to_any_register_are_left_without_a_search_table => "frame_without_search_table",
    frames_relative_to_any_register_are_left_by_debug_frame => "frame_in_debug_frame",
    code_made_at_run_time_is_left_by_what_the_program_registered => "registered_code",
    jit_code_that_replaces_other_code_has_its_own_frames => "registered_again",
    code_described_in_debug_frame_alone_is_left => "only_debug_frame",
    a_handler_that_interrupted_a_handler_is_walked_to_the_root => "nested_signals",
    stacks_of_coroutines_reach_their_entries => "coroutines",
    assembly_without_sizes_has_no_others_name_and_no_false_end => "assembly_without_sizes",
    assembly_without_unwind_information_is_left_as_its_end_says => "undescribed_assembly",
    the_stack_of_a_fiber_is_complete_where_it_begins => "fiber",
    cpu_time_of_a_thread_that_blocks_signals_is_told_as_not_sampled => "blocks_signals_later",
    threads_that_are_started_with_all_signals_blocked_are_recorded => "masked_workers",
    a_thread_in_step_with_the_tick_shows_all_its_functions_when_it_is_preempted => "in_step",
    functions_of_threads_that_share_a_cpu_have_their_shares_when_they_are_preempted => "deadlines",
    large_writes_to_a_pipe_are_whole => "whole_writes",
    a_sampler_that_may_not_go_to_other_cpus_says_what_it_could_not_preempt => "pinning_refused",
    a_parent_that_waits_for_its_vfork_child_is_not_disturbed => "vfork_child",
    a_child_in_the_parents_memory_puts_the_parent_in_no_sandbox => "vfork_sandbox",
    a_child_without_thread_local_data_makes_its_calls => "child_without_thread_data",
    cold_parts_of_functions_have_callers => "hot_and_cold",
    code_in_several_segments_is_walked_through => "far_code",
    frames_of_realigned_stacks_are_left_by_their_saved_pointer => "realigned_main",
    stubs_bound_before_the_program_begins_are_walked_through => "stubs_bound_at_start",
    stubs_that_bind_at_the_first_call_are_walked_through => "stubs_bound_lazily",
    stubs_that_nothing_describes_are_walked_through => "undescribed_stubs",
    who_calls_a_null_pointer_is_a_caller => "calls_nothing",
    what_a_signal_interrupted_is_a_caller_behind_a_restorer_of_its_own => "own_restorer",
    threads_have_whole_stacks_from_their_first_to_their_last_instruction => "thread_edges",
    children_of_a_host_whose_allocator_is_locked_while_it_forks_come_back => "allocator_with_fork_handlers",
    code_in_another_namespace_of_the_loader_is_walked_and_named => "other_namespace",
    who_stays_in_a_callback_of_the_loader_holds_up_nobody_and_may_fork => "loader_callback",
    a_host_that_closes_what_is_not_its_own_finds_nothing_of_ours => "closes_all_descriptors",
    faults_that_a_host_handles_itself_are_its_own => "crash_recovery",
    threads_with_alternate_stacks_that_are_too_small_are_not_asked => "small_alternate_stack",
    threads_with_split_stacks_are_not_signalled => "split_stack",
    code_with_garbage_in_its_stack_pointer_is_no_danger => "garbage_registers",
    threads_that_may_not_make_system_calls_are_not_asked => "strict_seccomp",
    a_program_that_sandboxes_itself_lives_until_it_ends => "sandboxed_service",
    threads_of_a_sandboxed_threads_threads_make_no_timers => "sandboxed_threads",
    programs_that_are_started_in_a_sandbox_have_no_agent => "sandboxed_children",
    children_of_threads_in_a_sandbox_have_no_agent => "sandboxed_forks",
    threads_that_fork_handlers_start_have_the_masks_of_who_forks => "threads_in_fork_handlers",
    a_thread_with_a_thread_pointer_of_its_own_ends_by_itself => "foreign_thread_pointer",
    a_thread_that_took_its_thread_pointer_away_is_no_danger => "no_thread_pointer",
    a_thread_that_may_not_read_the_time_stamp_counter_is_not_killed => "no_time_stamps",
    memory_that_a_host_gives_back_is_left_free => "memory_given_back",
    the_hosts_malloc_is_not_entered_by_threads_of_ours => "own_malloc",
    a_host_whose_signals_cannot_be_queued_goes_on => "no_queued_signals",
    a_process_that_is_traced_is_recorded => "traced",
    a_host_with_a_profiler_of_its_own_gets_its_own_signals => "own_profiler",
    a_process_that_is_stopped_and_continued_goes_on => "stopped_and_continued",
    a_real_time_host_has_no_real_time_thread_of_ours => "realtime",
    a_thread_with_16_kib_of_stack_keeps_nearly_all_of_it => "small_stack",
    a_process_that_is_not_dumpable_is_recorded => "not_dumpable",
    a_thread_whose_system_calls_are_emulated_is_not_asked => "foreign_system_calls",
    threads_of_the_kernels_for_io_uring_are_left_alone => "kernels_workers",
    no_wait_in_a_ring_of_io_uring_is_interrupted => "waits_in_ring",
    children_that_no_fork_handler_sees_end_and_fork => "forks_unseen",
    code_of_32_bits_in_a_program_of_64_is_no_danger => "code_of_32_bits",
    code_that_a_jitdump_file_describes_is_named_and_left => "jitdump",
    names_of_swift_are_made_readable_by_the_runtime_of_the_program => "swift_names",
}

/// The programs whose tests are written out.
const WRITTEN_OUT: &[&str] = &[
    "affinity_kept",
    "closed_by_client",
    // In container.rs.
    "closes_once",
    "dlopen_late",
    "exec_chain",
    "exit_while_recording",
    "exits_in_fork",
    "first_thread_exits",
    "last_thread_ends",
    "crash_helper",
    "fork_child",
    // In unasked.rs.
    "descriptor_2_is_data",
    "exits_beside_a_thread",
    "restarts_of_the_agent",
    // In attacks.rs.
    "hostile_files",
    "hot_reload",
    "low_fds",
    // In internal_faults.rs.
    "memory_limit",
    "no_system_calls",
    "preloaded_api",
    "registered_before_fork",
    "sandbox_unseen",
    "stop_and_start",
    "swipr_start_api",
    // In hazards.rs.
    "threads_end_in_exit",
    "changes_root",
    "children_with_the_same_id",
    "daemon",
    "drops_privileges",
    "few_queued_signals",
    "keeps_capabilities",
    "many_mappings",
    "needs_one_thread",
    "no_memory",
    "no_new_threads",
    "clock_is_set",
    "sandboxed_process",
    "sanitized",
    "starts_without_descriptors",
    "storms",
    "unloaded_agent",
    "waits_at_the_end",
    // In internal_faults.rs.
    "slow_start",
    // In truth.rs.
    "truth",
    "truth_unoptimised",
    "random_bursts",
];

/// Sources that are no programs.
const PARTS: &[&str] = &["late_library", "lazily_bound", "reloaded_library"];

#[test]
fn every_program_has_a_test() {
    let tested: BTreeSet<String> =
        [TELLING, WRITTEN_OUT, PARTS].concat().into_iter().map(str::to_string).collect();
    let files: BTreeSet<String> = std::fs::read_dir(sources())
        .expect("the folder of the programs")
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter_map(|name| name.strip_suffix(".c").map(str::to_string))
        .collect();
    assert_eq!(files, tested);
}

#[cfg(feature = "nightly")]
#[test]
fn every_other_program_is_content_without_the_agent() {
    let needs_more = [
        "crash_helper",
        "exits_in_fork",
        "exit_while_recording",
        "first_thread_exits",
        "last_thread_ends",
        "hostile_files",
        "hot_reload",
        "preloaded_api",
        "starts_without_descriptors",
        "stop_and_start",
        "swipr_start_api",
        "unloaded_agent",
    ];
    for name in WRITTEN_OUT.iter().filter(|name| !needs_more.contains(name)) {
        let (_directory, program) = compiled(name);
        is_content_without_the_agent(&program);
    }
}

/// Reads an answer until one of its samples has the stack.
fn read_until_stack(answer: &mut Answer, stack: &str) {
    wait_until(stack, || {
        assert!(answer.read_more().expect("more of the recording"), "the recording ended without {stack}");
        let text = String::from_utf8_lossy(&answer.body);
        let whole = text.rfind("\n\n").map_or(0, |end| end + 2);
        let samples = recording::perf(&text[..whole]).expect("perf text");
        samples.iter().any(|sample| has_stack(sample, stack))
    });
}

fn figure(recording: &recording::Recording, name: &str) -> u64 {
    let found = recording.stats.iter().find(|(known, _)| known == name);
    found.map_or_else(|| panic!("no figure {name}"), |&(_, value)| value)
}
