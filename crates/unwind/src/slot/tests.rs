extern crate std;
use super::*;

fn with_memory() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let memory = std::vec![0u64; CHUNK_BYTES / 8].leak();
        // SAFETY: zeroed, aligned, leaked.
        assert!(unsafe { add_chunk(0, memory.as_mut_ptr().cast()) });
    });
}

#[test]
fn a_late_answer_finds_nothing_to_write() {
    with_memory();
    let acquire = |hint| {
        let ticket = acquire(hint, StackBounds::default()).unwrap();
        assert!(!begin(ticket, 0), "nobody's");
        ticket.slot().unwrap().set_owner(77, 5);
        assert_eq!(timers_of(77).collect::<std::vec::Vec<i32>>(), [5]);
        ticket
    };
    let ticket = acquire(0);
    assert!(release(ticket));
    assert!(!begin(ticket, 5), "released");
    let next = acquire(usize::from(ticket.index));
    assert!(!begin(ticket, 5) || next.index != ticket.index, "another generation");
    assert!(!begin(next, 6), "another timer");
    assert!(!is_begun(next) && begin(next, 5) && is_begun(next));
    assert!(!begin(next, 5), "being written");
    assert!(!release(next), "being written");
    assert!(any_written());
    end(next);
    assert!(is_done(next) && is_begun(next) && !is_done(ticket));
    assert!(!begin(next, 5), "not taken yet");
    again(next, StackBounds::default());
    assert!(!is_done(next) && begin(next, 5));
    end(next);
    assert!(release(next) && !is_done(next) && !begin(next, 5));
}

#[test]
fn a_signals_value_carries_the_ticket() {
    let ticket = Ticket { index: 4095, generation: u32::MAX };
    assert_eq!(Ticket::from_value(ticket.to_value()), Some(ticket));
    assert_eq!(Ticket::from_value(0), None);
    assert_eq!(Ticket::from_value(ticket.to_value() | 1 << 47), None, "no such slot");
    assert_eq!(Ticket::from_value(ticket.to_value() ^ 1 << 60), None);
}

#[test]
fn a_slot_is_as_small_as_its_frames_allow() {
    assert!(size_of::<Slot>() <= 8 * 1024 + 128 + WINDOW + size_of::<Workspace>());
    assert!(size_of::<Workspace>() <= if cfg!(debug_assertions) { 51 * 1024 } else { 27 * 1024 });
}
