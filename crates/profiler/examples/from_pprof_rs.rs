//! What the examples of pprof-rs's README do, done with swipr.
//!
//!     cargo run -p swipr --release --example from_pprof_rs -- FOLDER

use std::fs::File;
use std::path::Path;
use swipr::{Frames, Profiler, Report};

type Done = Result<(), Box<dyn std::error::Error>>;

#[inline(never)]
fn is_prime(number: u64) -> bool {
    (2..).take_while(|divisor| divisor * divisor <= number).all(|divisor| !number.is_multiple_of(divisor))
}

/// Two threads of a pool, for as long as they are recorded.
fn work() {
    std::thread::scope(|scope| {
        for number in 1..=2 {
            let thread = std::thread::Builder::new().name(format!("grpc-server-{number}"));
            let search = || (1..2_000_000).filter(|&number| is_prime(number)).count();
            thread.spawn_scoped(scope, search).expect("a thread");
        }
    });
}

/// The report as text, while the recording runs.
fn printed(profiler: &Profiler) {
    println!("report: {:?}", profiler.report());
}

fn flame_graph(report: &Report, folder: &Path) -> Done {
    Ok(report.clone().title("primes").flamegraph(&mut File::create(folder.join("flamegraph.svg"))?)?)
}

/// Threads of a pool become one.
fn frames_post_processor() -> impl Fn(&mut Frames) {
    let thread_rename = [("grpc-server-", "grpc-server"), ("raftstore-", "raftstore")];
    move |frames| {
        for (begins, name) in thread_rename {
            if frames.thread_name.starts_with(begins) {
                frames.thread_name = name.to_string();
            }
        }
    }
}

fn renamed(report: &Report, folder: &Path) -> Done {
    let report = report.clone().frames_post_processor(frames_post_processor());
    Ok(report.write("folded", &mut File::create(folder.join("renamed.folded"))?)?)
}

/// For `pprof`: compressed already, and there is no other crate to write it with.
fn protobuf(report: &Report, folder: &Path) -> Done {
    Ok(report.pprof(&mut File::create(folder.join("profile.pb.gz"))?)?)
}

fn main() -> Done {
    let folder = std::env::args().nth(1).unwrap_or(".".into());
    let folder = Path::new(&folder);
    let profiler = Profiler::builder().hz(1000).start()?;
    work();
    printed(&profiler);
    // In the place of a blocklist while it samples: frames of these are safe to walk, and only left
    // out of the pictures.
    let report = profiler.stop()?.blocklist(&["libc", "libgcc", "pthread", "vdso"]);
    flame_graph(&report, folder)?;
    renamed(&report, folder)?;
    protobuf(&report, folder)
}
