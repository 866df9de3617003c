//! `swipr diff`.

use crate::support::*;
use swipr_c_tests::directory::Directory;

#[test]
fn functions_that_grew_and_shrank_are_told_whatever_the_formats_and_lengths() {
    let directory = Directory::new();
    let path = |name: &str| directory.path().join(name).display().to_string();
    std::fs::write(path("a.folded"), "main;parse 10\nmain;draw 90\n").expect("a file");
    std::fs::write(path("b.folded"), "main;parse 500\nmain;draw 500\n").expect("a file");
    says(["convert", &path("b.folded"), "-o", &path("b.pb.gz")]).well();
    for after in ["b.folded", "b.pb.gz"] {
        let said = says(["diff", &path("a.folded"), &path(after)]).well();
        let line = |name: &str| said.out.lines().find(|line| line.contains(name)).expect(name).to_owned();
        assert!(line("parse").contains("+40.0") && line("draw").contains("-40.0"), "{said:?}");
    }
    for name in ["d.html", "d.svg"] {
        let said = says(["diff", &path("a.folded"), &path("b.pb.gz"), "-o", &path(name)]).well();
        assert!(said.errors.contains("next: open it in a browser"), "{said:?}");
        assert!(read(&directory.path().join(name)).contains("parse"), "{name}");
    }
}

/// Two runs of one program, of 20 samples each, differed by up to 14 %, without a word.
#[test]
fn what_chance_does_to_a_few_samples_is_marked_and_comes_last() {
    let directory = Directory::new();
    let path = |name: &str| directory.path().join(name).display().to_string();
    let text = |parse: usize, draw: usize, idle: usize| {
        let sample = |function: &str| {
            format!(
                "app 7/7 1.000000000: 1000 cpu-clock:\n\t10 {function}+0x0 (/app)\n\t20 main+0x0 (/app)\n\n"
            )
        };
        sample("parse").repeat(parse) + &sample("draw").repeat(draw) + &sample("idle").repeat(idle)
    };
    std::fs::write(path("a.perf"), text(10, 90, 0)).expect("a file");
    std::fs::write(path("b.perf"), text(22, 77, 1)).expect("a file");
    std::fs::write(path("c.perf"), text(400, 590, 10)).expect("a file");
    let marked = |after: &str| {
        let said = says(["diff", &path("a.perf"), &path(after)]).well().out;
        let rows = said.lines().skip_while(|line| !line.contains(" function")).skip(1);
        let row = |row: &str| row.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let rows = rows.map(row).map(|row| (row[5].clone(), row[0].ends_with('~')));
        (said.clone(), rows.collect::<Vec<_>>())
    };
    let rows =
        |rows: &[(&str, bool)]| rows.iter().map(|(name, is)| ((*name).to_owned(), *is)).collect::<Vec<_>>();
    let (said, few) = marked("b.perf");
    assert!(said.contains("~: chance may do that with 100 samples before and 100 after"), "{said}");
    assert_eq!(few, rows(&[("draw", true), ("parse", true), ("idle", true), ("main", true)]), "{said}");
    let (said, many) = marked("c.perf");
    assert_eq!(many, rows(&[("draw", false), ("parse", false), ("idle", true), ("main", true)]), "{said}");
    // Ticks of one wait are no independent samples, and nanoseconds do not say how many there were.
    std::fs::write(path("wall.folded"), "main;parse 22\nmain;draw 77\n").expect("a file");
    std::fs::write(path("ns.folded"), "main;parse 400000000\nmain;draw 590000000\n").expect("a file");
    for file in ["wall.folded", "ns.folded"] {
        for options in [&[][..], &["--weight", "samples"]] {
            let said = says([&["diff", &path(file), &path(file)], options].concat()).well().out;
            assert!(!said.contains('~'), "{said}");
        }
    }
}

/// Regression: each process was only in one of the two, and all of it had grown or shrunk.
#[test]
fn processes_are_compared_by_their_names() {
    let directory = Directory::new();
    let path = |name: &str| directory.path().join(name).display().to_string();
    let app = |pid: u32, parse: u32| format!("[process {pid} my app];main;parse {parse}\n");
    std::fs::write(path("a.folded"), app(7, 10) + &app(8, 10) + "[process 9 sh];main 80\n").expect("a file");
    std::fs::write(path("b.folded"), app(17, 30) + "[process 19 sh];main 70\n").expect("a file");
    let said = says(["diff", &path("a.folded"), &path("b.folded")]).well();
    let of = |name: &str| said.out.lines().find(|line| line.contains(name)).expect(name).to_owned();
    assert!(of("parse").contains("+10.00"), "{said:?}");
    assert!(!said.out.contains("[process 7"), "{said:?}");
}

/// Regression: each of these stacks counted as one sample, and much had changed.
#[test]
fn nanoseconds_of_wall_clock_time_are_compared_with_samples_of_it() {
    let directory = Directory::new();
    let path = |name: &str| directory.path().join(name).display().to_string();
    std::fs::write(path("a.folded"), "main;poll;[blocked in poll] 90\nmain;parse 10\n").expect("a file");
    let ns = "main;poll;[blocked in poll] 900000000\nmain;parse 99000000\nmain;draw 1000000\n";
    std::fs::write(path("b.folded"), ns).expect("a file");
    let said = says(["diff", &path("a.folded"), &path("b.folded")]).well();
    assert!(said.out.contains("100 samples before, 1000 samples after"), "{said:?}");
    let changes = said.out.lines().skip(2).filter(|line| !line.contains("+0.00")).count();
    assert_eq!(changes, 2, "a tenth of a percent: {said:?}");
}

/// A folded file was compared with whatever there was.
#[test]
fn a_folded_file_with_threads_that_wait_is_of_wall_clock_time() {
    let directory = Directory::new();
    let path = |name: &str| directory.path().join(name).display().to_string();
    let cpu = "app 7/7 1.000000000: 10000000 cpu-clock:\n\t1000 main+0x0 (/app)\n\n";
    std::fs::write(path("cpu.perf"), cpu).expect("a file");
    std::fs::write(path("plain.folded"), "main;poll 3\n").expect("a file");
    says(["diff", &path("cpu.perf"), &path("plain.folded")]).well();
    for leaf in ["[blocked in poll]", "[blocked]", "[waiting for a CPU]"] {
        std::fs::write(path("wall.folded"), format!("main;poll;{leaf} 3\n")).expect("a file");
        says(["diff", &path("cpu.perf"), &path("wall.folded")]).refuses(2, &["is of wall-clock time", "CPU"]);
        says(["diff", &path("plain.folded"), &path("wall.folded")]).well();
    }
}

/// Nanoseconds were compared with samples of wall-clock time, and nothing was said.
#[test]
fn a_folded_file_of_nanoseconds_is_of_cpu_time_and_one_that_does_not_say_is_named() {
    let directory = Directory::new();
    let path = |name: &str| directory.path().join(name).display().to_string();
    let diff = |before: &str, after: &str| says(["diff", &path(before), &path(after)]);
    std::fs::write(path("cpu.folded"), "main;parse 70000000\nmain;draw 10000000\n").expect("a file");
    std::fs::write(path("wall.folded"), "main;poll;[blocked] 3\n").expect("a file");
    std::fs::write(path("plain.folded"), "main;poll 3\n").expect("a file");
    diff("cpu.folded", "wall.folded").refuses(2, &["cpu.folded is of CPU time", "is of wall-clock time"]);
    let said = diff("cpu.folded", "cpu.folded").well();
    assert_eq!(said.errors, "", "{said:?}");
    for (before, after) in [("cpu.folded", "plain.folded"), ("plain.folded", "plain.folded")] {
        let said = diff(before, after).well();
        let count = said.errors.lines().filter(|line| line.contains("plain.folded does not say")).count();
        assert_eq!(count, 1, "{said:?}");
    }
}

/// Regression: on a full disk a part of the new page was where the earlier one had been.
#[test]
fn an_earlier_comparison_stays_until_the_new_one_is_whole() {
    use std::os::unix::process::CommandExt;
    let directory = Directory::new();
    let (stacks, page) = (directory.path().join("a.folded"), directory.path().join("d.html"));
    std::fs::write(&stacks, "main;parse 10\n").expect("a file");
    std::fs::write(&page, "the earlier one").expect("a file");
    let diff = || swipr(["diff".as_ref(), &*stacks, &stacks, "-o".as_ref(), &page]);
    let short = libc::rlimit { rlim_cur: 100, rlim_max: 100 };
    let limit = move || {
        // SAFETY: signal(2) and setrlimit(2) take values and a struct that lives here.
        unsafe {
            libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
            libc::setrlimit(libc::RLIMIT_FSIZE, &short);
        }
        Ok(())
    };
    let mut limited = diff();
    // SAFETY: two system calls, which take no lock and no memory.
    said(unsafe { limited.pre_exec(limit) }).refuses(1, &["cannot write", "File too large"]);
    assert_eq!(read(&page), "the earlier one");
    assert_eq!(std::fs::read_dir(directory.path()).expect("the folder").count(), 2);
    said(&mut diff()).well();
    assert!(read(&page).contains("<html"));
}

#[test]
fn what_cannot_be_compared_is_told() {
    let directory = Directory::new();
    let path = |name: &str| directory.path().join(name).display().to_string();
    std::fs::write(path("a.folded"), "main;parse 10\n").expect("a file");
    says(["diff", &path("a.folded"), "/no/such/file"]).refuses(1, &["/no/such/file"]);
    says(["diff", &path("a.folded"), &path("a.folded"), "-o", "x.gif"]).refuses(2, &["x.gif", ".html"]);
}
