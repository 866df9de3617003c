//! How long a running thread is held for one stack: swipr's handler against an empty one and
//! against peers.
//!
//! `cargo run --release -p swipr-benches --bin hold -- [ROUNDS]`

use std::error::Error;
use std::time::Duration;
use swipr_benches::bars::figure;
use swipr_benches::figures::{Series, Table};
use swipr_benches::hold::{Bench, Method};
use swipr_benches::target::{SIGNAL_STACK_BYTES, Target};
use swipr_benches::ticks::Scale;
use swipr_benches::{machine, peers};
use swipr_unwind::published;

/// Frames of the stacks.
const DEPTHS: [usize; 3] = [15, 35, 105];
/// Parts of the run that are compared, each with the bare signals of the same part, for the spread.
const BLOCKS: usize = 10;
/// A pattern that is not written by chance.
const PAINT: u64 = 0xa5a5_5a5a_c3c3_3c3c;

fn main() -> Result<(), Box<dyn Error>> {
    let rounds = std::env::args().nth(1).map_or(Ok(1000), |text| text.parse())?;
    let cpus = machine::allowed_cpus();
    let (Some(&ours), Some(&other)) = (cpus.first(), cpus.get(1)) else {
        return Err("two processors are needed".into());
    };
    println!("{}", machine::description());
    let scale = Scale::measured();
    let bench = Bench::new()?;
    machine::pin(ours);
    let first = machine::run_first();
    println!(
        "{BLOCKS} blocks of {rounds} rounds; {}",
        if first { "SCHED_FIFO" } else { "ordinary priority" }
    );
    if peers::libunwind().is_none() {
        println!("libunwind.so.8 is not installed: left out");
    }
    let methods = Method::available();
    for handler in [Method::Pprof, Method::Gperftools].into_iter().filter(|method| !methods.contains(method))
    {
        println!("{}: not installed, or it refused: left out", handler.name());
    }
    let mut held = Table::new(&[
        "frames",
        "held, ns",
        "p50",
        "p99",
        "p50 of the blocks",
        "above bare, p50",
        "p50 / bare",
        "of the blocks",
        "p99 / bare, p50 of the blocks",
        "95 % interval",
        "ns a frame above bare",
        "frames seen",
        "left out",
    ]);
    let mut walk = Table::new(&["frames", "walk alone, ns a frame", "p50", "p99"]);
    let mut stack = Table::new(&["frames", "handler", "bytes of stack"]);
    for depth in DEPTHS {
        let target = target_of_depth(&bench, depth, other, scale)?;
        measure_held(&bench, &target, depth, rounds, &mut held)?;
        measure_walk(&bench, &target, depth, rounds, scale, &mut walk);
        measure_stack(&bench, &target, depth, &mut stack)?;
    }
    println!("\n{}\n{}\n{}", held.text(), walk.text(), stack.text());
    Ok(())
}

/// A target whose stack has exactly so many frames.
fn target_of_depth(bench: &Bench, depth: usize, cpu: usize, scale: Scale) -> Result<Target, Box<dyn Error>> {
    let around = frames_of(bench, &Target::start(cpu, 1, scale)?)?.saturating_sub(1);
    let levels = depth.checked_sub(around).ok_or("the stack around is deeper already")?;
    Ok(Target::start(cpu, levels as u32, scale)?)
}

fn frames_of(bench: &Bench, target: &Target) -> Result<usize, Box<dyn Error>> {
    for _ in 0..1000 {
        if let Some(sample) = bench.sample(target, Method::Swipr)? {
            return Ok(sample.frames);
        }
    }
    Err("the target did not answer".into())
}

#[derive(Default)]
struct Measured {
    blocks: Vec<Series>,
    frames: Series,
    lost: usize,
}

fn measure_held(
    bench: &Bench,
    target: &Target,
    depth: usize,
    rounds: usize,
    table: &mut Table,
) -> Result<(), Box<dyn Error>> {
    let methods = Method::available();
    let mut all: Vec<Measured> = methods.iter().map(|_| Measured::default()).collect();
    for block in 0..=BLOCKS {
        let warm_up = block == 0;
        all.iter_mut().filter(|_| !warm_up).for_each(|measured| measured.blocks.push(Series::default()));
        for _ in 0..if warm_up { 30 } else { rounds } {
            for (method, measured) in methods.iter().zip(&mut all) {
                match (bench.sample(target, *method)?, measured.blocks.last_mut()) {
                    (Some(sample), Some(block)) => {
                        block.push(sample.held_ns);
                        measured.frames.push(sample.frames as f64);
                    }
                    (None, Some(_)) => measured.lost += 1,
                    (_, None) => {}
                }
                // The other processor's thread runs meanwhile, and so does a thread that shares
                // this processor.
                std::thread::sleep(Duration::from_micros(50));
            }
        }
    }
    let whole = |measured: &Measured| {
        let mut series = Series::default();
        measured.blocks.iter().for_each(|block| series.extend(block));
        series
    };
    let Some(bare) = all.first() else { return Ok(()) };
    let bare_whole = whole(bare);
    for (method, measured) in methods.iter().zip(&all) {
        let series = whole(measured);
        let medians: Series = measured.blocks.iter().map(Series::median).collect();
        // The bare signals' own blocks against all of them: how far two parts of the run differ by
        // themselves.
        let beside = |block| if *method == Method::Bare { &bare_whole } else { block };
        let pairs = measured.blocks.iter().zip(bare.blocks.iter().map(beside));
        let ratios = |part: f64| -> Series {
            pairs.clone().map(|(block, bare)| block.percentile(part) / bare.percentile(part)).collect()
        };
        let (medians_to_bare, slowest_to_bare) = (ratios(0.5), ratios(0.99));
        let frames = measured.frames.median();
        let per_frame = (series.median() - bare_whole.median()) / frames;
        let (p50, p99) = (series.median() / bare_whole.median(), slowest_to_bare.median());
        figure(&format!("held p50 {} {depth}", method.name()), p50, &medians_to_bare.spread(2));
        figure(&format!("held p99 {} {depth}", method.name()), p99, &slowest_to_bare.interval(2));
        table.row(vec![
            depth.to_string(),
            method.name().into(),
            format!("{:.0}", series.median()),
            format!("{:.0}", series.percentile(0.99)),
            medians.spread(0),
            format!("{:.0}", series.median() - bare_whole.median()),
            format!("{p50:.2}"),
            medians_to_bare.spread(2),
            format!("{p99:.2}"),
            slowest_to_bare.interval(2),
            if frames > 0.0 { format!("{per_frame:.1}") } else { "–".into() },
            if frames > 0.0 { format!("{frames:.0}") } else { "–".into() },
            measured.lost.to_string(),
        ]);
    }
    Ok(())
}

fn measure_walk(
    bench: &Bench,
    target: &Target,
    depth: usize,
    rounds: usize,
    scale: Scale,
    table: &mut Table,
) {
    let (mut cold, mut warm) = (Series::default(), Series::default());
    for _ in 0..rounds {
        published::clear_cache();
        if let Some((first, later, frames)) = bench.walk_alone(target) {
            cold.push(scale.ns(0, first) / frames as f64);
            warm.push(scale.ns(0, later) / frames as f64);
        }
        std::thread::sleep(Duration::from_micros(50));
    }
    for (name, series) in [("after the cache was cleared", cold), ("warm", warm)] {
        figure(
            &format!("walk alone {name} {depth}"),
            series.median(),
            &format!("p99 {:.1}", series.percentile(0.99)),
        );
        let percentile = |part| format!("{:.1}", series.percentile(part));
        table.row(vec![depth.to_string(), name.into(), percentile(0.5), percentile(0.99)]);
    }
}

fn measure_stack(
    bench: &Bench,
    target: &Target,
    depth: usize,
    table: &mut Table,
) -> Result<(), Box<dyn Error>> {
    let mut kernel = 0;
    for method in Method::available().into_iter().filter(|method| method.uses_signal_stack()) {
        for cold in [false, true] {
            let Some(used) = stack_used(bench, target, method, cold)? else { continue };
            let name = match (method, cold) {
                (Method::Bare, false) => "the kernel's frame and an empty handler",
                (Method::Swipr, false) => "above that: swipr, warm",
                (Method::Swipr, true) => "above that: swipr, after the cache was cleared",
                (Method::Bare | Method::BareQueued, _) | (_, true) => continue,
                (method, false) => &format!("above that: {}", method.name()),
            };
            if method == Method::Bare {
                kernel = used;
                table.row(vec![depth.to_string(), name.into(), used.to_string()]);
            } else {
                let above = used.saturating_sub(kernel);
                figure(
                    &format!("stack {} {depth}{}", method.name(), if cold { " cold" } else { "" }),
                    above as f64,
                    "",
                );
                table.row(vec![depth.to_string(), name.into(), above.to_string()]);
            }
        }
    }
    Ok(())
}

/// Bytes of the alternate stack that were written, from its end down to the lowest.
fn stack_used(
    bench: &Bench,
    target: &Target,
    method: Method,
    cold: bool,
) -> Result<Option<usize>, Box<dyn Error>> {
    let words = SIGNAL_STACK_BYTES / 8;
    let stack = target.signal_stack.cast::<u64>();
    for _ in 0..1000 {
        for word in 0..words {
            // SAFETY: inside the target's alternate stack, which stays mapped; no handler runs now.
            unsafe { stack.add(word).write_volatile(PAINT) };
        }
        if cold {
            published::clear_cache();
        }
        if bench.sample(target, method)?.is_some() {
            // SAFETY: as above; the handler has returned.
            let painted = (0..words).take_while(|&word| unsafe { stack.add(word).read_volatile() } == PAINT);
            return Ok(Some(SIGNAL_STACK_BYTES - 8 * painted.count()));
        }
    }
    Ok(None)
}
