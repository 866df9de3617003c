//! Recordings that preempt, and others beside each other.

use std::time::Duration;
use swipr_c_tests::expectation::expect;
use swipr_c_tests::host::{self, Host, wait_until};
use swipr_c_tests::program::compiled;

/// The threads of a host and the CPUs on which each may run, by name.
fn cpus_of_threads(host: &Host) -> Vec<(String, String)> {
    let tasks = std::fs::read_dir(format!("/proc/{}/task", host.pid())).expect("the host's threads");
    let statuses = tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("status")).ok());
    let field = |status: &str, name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap_or_default().trim().to_string()
    };
    statuses.map(|status| (field(&status, "Name:"), field(&status, "Cpus_allowed_list:"))).collect()
}

#[test]
fn only_the_sampler_is_pinned_to_a_cpu_and_only_while_it_preempts() {
    let (_directory, program) = compiled("affinity_kept");
    let host = Host::start(&program);
    let all = cpus_of_threads(&host)[0].1.clone();
    let preempting = host.begin_recording("seconds=60&hz=500&mode=cpu&source=preempt&format=perf");
    // A sampler that may use one CPU only cannot be pinned to fewer.
    wait_until("the sampler to be pinned", || {
        let pinned: Vec<_> = cpus_of_threads(&host).into_iter().filter(|thread| thread.1 != all).collect();
        assert!(pinned.iter().all(|thread| thread.0.contains("sampler")), "{pinned:?} of {all}");
        !pinned.is_empty() || all.parse::<u32>().is_ok()
    });
    let beside = host.begin_recording("seconds=60&hz=100&mode=cpu&format=perf");
    drop(preempting);
    wait_until("the sampler to be where it was", || {
        let threads = cpus_of_threads(&host);
        let is_there = threads.iter().any(|thread| thread.0.contains("sampler"));
        assert!(is_there, "the other recording continues");
        threads.iter().all(|thread| thread.1 == all)
    });
    drop(beside);
    host.end();
}

/// The CPU time of a host's thread of that name.
fn cpu_ns_of(host: &Host, name: &str) -> u64 {
    let tasks = std::fs::read_dir(format!("/proc/{}/task", host.pid())).expect("the host's threads");
    let read = |path: std::path::PathBuf| std::fs::read_to_string(path).unwrap_or_default();
    let mut tasks = tasks.filter_map(|task| Some(task.ok()?.path()));
    let task = tasks.find(|task| read(task.join("comm")).trim() == name).expect("the thread");
    read(task.join("schedstat")).split(' ').next().and_then(|ns| ns.parse().ok()).expect("nanoseconds")
}

/// The recording that preempts begins first and ends last: a hit of a moment at which the other one
/// ran alone would represent all of its time.
#[test]
fn recordings_by_timers_and_by_preemption_have_all_their_samples_beside_each_other() {
    let (_directory, program) = compiled("cpu_and_wall");
    let host = Host::start(&program);
    let (of_wall, of_cpu) = ("mode=wall&format=perf", "mode=cpu&format=folded");
    for (preempting, timed) in [(of_cpu, of_wall), (of_wall, of_cpu)] {
        let preempting_query = format!("seconds=2&hz=250&source=preempt&{preempting}");
        let timed_query = format!("seconds=1&hz=250&source=timer&{timed}");
        let before_ns = cpu_ns_of(&host, "burner");
        let asked = std::time::Instant::now();
        let preempting = host.begin_recording(&preempting_query);
        let timed = host.begin_recording(&timed_query);
        let begun_ns = cpu_ns_of(&host, "burner");
        // Both recordings are still running.
        std::thread::sleep(Duration::from_millis(980).saturating_sub(asked.elapsed()));
        let least_ns = cpu_ns_of(&host, "burner") - begun_ns;
        let timed = host::finish_recording(timed, &timed_query);
        let preempting = host::finish_recording(preempting, &preempting_query);
        let most_ns = cpu_ns_of(&host, "burner") - before_ns;
        let is_cpu_timed = timed_query.ends_with(of_cpu);
        let (wall, cpu) = if is_cpu_timed { (preempting, timed) } else { (timed, preempting) };
        expect(
            &wall,
            &[
                "every tick is accounted for",
                "every sample of sleeper has stack sleeper_main;sleep_long",
                "every sample of burner has stack burner_main;burn",
            ],
        );
        expect(&cpu, &["thread sleeper is not sampled", "every sample of burner has stack burner_main;burn"]);
        // Folded stacks of CPU time count its nanoseconds.
        let told_ns = cpu.count() + cpu.unseen;
        assert!((least_ns..=most_ns).contains(&told_ns), "{told_ns} of {least_ns} to {most_ns} ns");
        assert!(wall.unseen * 10 <= wall.count(), "{} without stack: {:?}", wall.unseen, wall.stats);
    }
    host.end();
}

/// Regression: a slower recording got the hit at the first tick of each burst, for which a faster
/// one had the timer armed: so many that the thread seemed in step with the kernel's tick.
#[test]
fn a_recording_has_the_hits_only_that_it_has_picked() {
    let (_directory, program) = compiled("random_bursts");
    let host = Host::start(&program);
    let slow_query = "seconds=8&hz=49&mode=cpu&format=perf";
    let before_ns = cpu_ns_of(&host, "bursts");
    let slow = host.begin_recording(slow_query);
    let fast = host.begin_recording("seconds=60&hz=1000&mode=cpu&format=perf");
    let slow = host::finish_recording(slow, slow_query);
    let expected = (cpu_ns_of(&host, "bursts") - before_ns) * 49 / 1_000_000_000;
    expect(&slow, &["share of bursts with stack bursts_main;burst >= 0.8"]);
    assert!(slow.count() <= 2 * expected + 10, "{} samples, expected {expected}", slow.count());
    drop(fast);
    host.end();
}
