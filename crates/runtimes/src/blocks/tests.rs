use super::*;

fn zeroed() -> Box<Blocks> {
    // SAFETY: zeroed memory is valid.
    unsafe { Box::new_zeroed().assume_init() }
}

#[test]
fn what_spans_blocks_is_read_whole_and_each_block_once() {
    let data: Vec<u8> = (0..3 * 4096).map(|n| (n * 7 % 251) as u8).collect();
    let mut blocks = zeroed();
    let mut memory = BlockMemory::new(&mut blocks, -1);
    let start = data.as_ptr() as u64;
    memory.prefetch([100, 5000, 100].map(|at| start + at).into_iter(), 200);
    assert_eq!(memory.reads, 2);
    let mut copy = vec![0; 8192];
    for at in [0, 1, 4095, 77] {
        memory.copy(start + at as u64, &mut copy).unwrap();
        assert_eq!(copy, data[at..at + 8192]);
    }
    assert!(memory.reads <= 17, "{}", memory.reads);
}

/// What another place was written over is not known any more, and what could not be read never was.
#[test]
fn each_word_is_the_one_that_is_there_whatever_was_read_before() {
    const PAGE: usize = 4096;
    let random = |at: usize| crate::hash::hash([at as u64]) as usize;
    // SAFETY: new memory, of which the last page becomes unreadable.
    let data = unsafe {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let data =
            libc::mmap(std::ptr::null_mut(), 65 * PAGE, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0);
        libc::mprotect(data.byte_add(64 * PAGE), PAGE, libc::PROT_NONE);
        std::slice::from_raw_parts_mut(data.cast::<u64>(), 64 * PAGE / 8)
    };
    let start = data.as_ptr() as u64;
    let mut blocks = zeroed();
    for walk in 0..50 {
        data.iter_mut().enumerate().for_each(|(at, word)| *word = (random(at) ^ walk) as u64);
        let mut memory = BlockMemory::new(&mut blocks, -1);
        memory.allow(4000);
        for step in 0..200 {
            let any = |of: usize| random((walk * 200 + step) * 32 + of);
            // The last places are near the end, and some lie across it.
            let place = |of: usize| match any(of) % 5 {
                0 => (64 * PAGE - any(of) % 512 * 8) as u64,
                _ => (any(of) % (64 * PAGE)) as u64,
            };
            memory.read_many((0..16).map(|of| (start + place(of), 8 + any(of + 16) % 400)));
            let at = any(31) % data.len();
            if let Some(word) = memory.word(start + 8 * at as u64) {
                assert_eq!(word, data[at], "walk {walk}, step {step}");
            }
            for at in (0..16).map(|of| place(of) as usize / 8).filter(|&at| at < data.len()) {
                if let Some(word) = memory.known_word(start + 8 * at as u64) {
                    assert_eq!(word, data[at], "walk {walk}, step {step}, {at}");
                }
            }
        }
    }
    // SAFETY: mapped above, and not used any more.
    unsafe { libc::munmap(data.as_mut_ptr().cast(), 65 * PAGE) };
}

#[test]
fn a_walk_begins_with_what_the_last_two_of_the_thread_needed() {
    let data = vec![7u8; 64 * BLOCK];
    let places: Vec<u64> = (0..12).map(|n| data.as_ptr() as u64 + n * 5 * BLOCK as u64).collect();
    let mut blocks = zeroed();
    // SAFETY: zeroed memory is valid.
    let mut guess: Guess = unsafe { std::mem::zeroed() };
    for (walk, expected) in [(0, 0), (1, 0), (2, places.len())] {
        let mut memory = BlockMemory::new(&mut blocks, -1);
        memory.expect(&guess);
        assert_eq!(memory.reads, expected, "walk {walk}");
        assert!(places.iter().all(|&place| memory.byte(place) == Some(7)));
        assert_eq!(memory.reads, places.len(), "walk {walk}");
        memory.learn(&mut guess);
    }
    // What was guessed, and not needed, is not guessed again.
    let mut memory = BlockMemory::new(&mut blocks, -1);
    memory.expect(&guess);
    memory.byte(places[3]);
    memory.learn(&mut guess);
    assert_eq!(guess.count, 1);
}

#[test]
fn unmapped_memory_is_no_answer_and_the_number_of_reads_is_bounded() {
    let mut blocks = zeroed();
    let mut memory = BlockMemory::new(&mut blocks, -1);
    memory.prefetch([8, 16, 4096].into_iter(), 64);
    assert_eq!([8, 4090, u64::MAX - 7, u64::MAX - 4].map(|at| memory.word(at)), [None; 4]);
    let data = vec![1u8; (MAX_READS + 2) * BLOCK];
    let read = data.chunks(BLOCK).filter_map(|block| memory.byte(block.as_ptr() as u64)).count();
    assert!((MAX_READS - 8..MAX_READS).contains(&read), "{read}");
    assert!(memory.is_used_up());
}

#[test]
fn a_pool_lends_each_of_its_pages_to_one_at_a_time() {
    // SAFETY: zeroed memory is valid.
    let pool: Box<Pool> = unsafe { Box::new_zeroed().assume_init() };
    fn nested(pool: &Pool, depth: usize) -> usize {
        pool.with(|_| nested(pool, depth + 1)).unwrap_or(depth)
    }
    assert_eq!(nested(&pool, 0), Pool::SIZE);
    assert_eq!(nested(&pool, 0), Pool::SIZE, "all were given back");
}
