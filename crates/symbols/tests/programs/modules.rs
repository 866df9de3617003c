//! A module, a generic function, a trait's method and an inlined one.
use std::hint::black_box;

mod inner {
    use std::hint::black_box;

    #[inline(never)]
    pub fn generic<T: std::fmt::Debug>(value: T) -> usize {
        inlined(format!("{value:?}").len()) // generic
    }

    #[inline(always)]
    fn inlined(length: usize) -> usize {
        black_box(length) * 3 // inlined
    }
}

trait Speak {
    fn speak(&self) -> usize;
}

struct Dog;

impl Speak for Dog {
    #[inline(never)]
    fn speak(&self) -> usize {
        black_box(41) + 1 // speak
    }
}

fn main() {
    let speaker: &dyn Speak = black_box(&Dog);
    println!("{}", inner::generic(black_box(7_u32)) + speaker.speak());
}
