//! Threads that sort, hash, format, lock, sleep and pass messages, until ended.
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

fn sorts(seed: u64) -> u64 {
    let mut values: Vec<u64> = (0..2000u64).map(|i| i.wrapping_mul(seed | 1).rotate_left(17)).collect();
    values.sort_by(|a, b| b.cmp(a));
    values.iter().step_by(7).fold(0, |sum, value| sum ^ value)
}

fn formats(seed: u64) -> usize {
    (0..200).map(|i| format!("{i:>8}-{:x}-{}", seed, f64::from(i) / 3.0)).map(|text| text.len()).sum()
}

fn maps(seed: u64) -> usize {
    let map: HashMap<String, u64> = (0..500).map(|i| (format!("key{}", i ^ seed), i)).collect();
    let tree: BTreeMap<_, _> = map.iter().collect();
    tree.range("key1".to_string()..).count()
}

fn main() {
    let total = Arc::new(Mutex::new(0u64));
    let (sender, receiver) = mpsc::channel::<u64>();
    for number in 0..2u64 {
        let (total, sender) = (total.clone(), sender.clone());
        let body = move || {
            for turn in 0.. {
                let value = sorts(turn) ^ formats(turn) as u64 ^ maps(turn) as u64;
                *total.lock().unwrap() ^= value;
                let _ = sender.send(value);
            }
        };
        let _ = thread::Builder::new().name(format!("worker-{number}")).spawn(body);
    }
    let _ = thread::Builder::new().name("sleeper".into()).spawn(|| loop {
        thread::sleep(Duration::from_millis(3));
    });
    let mut sum = 0u64;
    for value in receiver {
        sum = sum.wrapping_add(value);
    }
    println!("{sum}");
}
