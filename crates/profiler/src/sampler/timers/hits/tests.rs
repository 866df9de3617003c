use super::*;
use crate::sampler::threads::Threads;
use std::sync::mpsc::channel;

#[test]
fn a_thread_is_waited_for_while_its_handler_works_and_not_where_no_tick_found_it() {
    let ((sent, received), (end, wait)) = (channel(), channel::<()>());
    let spawned = std::thread::spawn(move || {
        sent.send(process::tid()).unwrap();
        _ = wait.recv();
    });
    let tid = received.recv().unwrap();
    while threads::is_awake(tid) {
        std::thread::yield_now();
    }
    let (mut known, mut timers) = (Threads::new().unwrap(), Timers::new(Arc::default()));
    let (tables, counters) = (Tables::new(-1), AgentCounters::default());
    known.refresh(&[]);
    let thread = known.get_mut(tid).unwrap();
    thread.timer = timers.new_timer(thread);
    let timer = thread.timer.as_ref().unwrap();
    let (ticket, id) = (timer.ticket, timer.timer.id());
    let mut take = |is_armed: bool| {
        thread.timer.as_mut().unwrap().expires_ns = u64::from(is_armed);
        let hit = timers.take(thread, process::monotonic_ns(), &tables, &counters);
        (hit.is_some(), thread.timer.as_ref().unwrap().is_armed())
    };
    assert_eq!(take(true), (false, false), "it does not run");
    assert!(slot::begin(ticket, id));
    assert_eq!(take(true), (false, true));
    slot::end(ticket);
    assert_eq!(take(true), (true, false));
    timers.remove(thread);
    drop(end);
    spawned.join().unwrap();
}
