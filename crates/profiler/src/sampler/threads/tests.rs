use super::*;
use std::sync::mpsc::channel;
use std::thread::Builder;

#[test]
fn a_thread_named_like_ours_is_not_sampled_before_it_is_known_whose_it_is() {
    let (sender, receiver) = channel();
    let (end, wait) = channel::<()>();
    let wait = std::sync::Arc::new(std::sync::Mutex::new(wait));
    let spawned: Vec<_> = ["swipr-newborn", "programs-own"]
        .map(|name| {
            let (sender, wait) = (sender.clone(), wait.clone());
            let body = move || {
                sender.send((name, swipr_os::process::tid())).unwrap();
                let _ = wait.lock().unwrap().recv();
            };
            Builder::new().name(name.into()).spawn(body).unwrap()
        })
        .into();
    let tids: FxHashMap<&str, u32> = receiver.iter().take(2).collect();
    let mut threads = Threads::new().unwrap();
    for _ in 0..2 {
        threads.refresh(&[]);
        let known: Vec<u32> = threads.iter().map(ThreadState::tid).collect();
        assert!(known.contains(&tids["programs-own"]) && !known.contains(&tids["swipr-newborn"]));
    }
    threads.suspects.insert(tids["swipr-newborn"], 0);
    threads.refresh(&[]);
    assert!(threads.iter().any(|thread| thread.tid() == tids["swipr-newborn"]));
    drop(end);
    spawned.into_iter().for_each(|thread| thread.join().unwrap());
}
