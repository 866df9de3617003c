//! Where a thread is woken. Observations find it in the calls in which it is blocked longest; it
//! waits for a CPU behind those in which it is blocked most often. Of an observation during which
//! the thread moved it is known that its block ended just then: such observations are as frequent
//! at each place as its wakes are.

use crate::stack::RawStack;
use std::sync::Arc;

/// Places that are kept.
const PLACES: usize = 8;
/// More wakes than this count half: a program changes.
const MOST: f32 = 32.0;
/// The place where the thread was last seen blocked counts as so many wakes: there may be none yet.
const LAST: f32 = 1.0;

#[derive(Debug)]
struct WokenPlace {
    stack: Arc<RawStack>,
    wakes: f32,
    waits: f32,
}

/// Places with their wakes, and the waits that were shown there.
#[derive(Debug, Default)]
pub struct Wakes {
    places: Vec<WokenPlace>,
    /// Waits that were shown where the thread was last seen blocked.
    last_waits: f32,
}

impl Wakes {
    /// The thread was woken there while it was observed.
    pub fn add(&mut self, stack: &Arc<RawStack>) {
        match self.places.iter_mut().find(|place| place.stack == *stack) {
            Some(place) => (place.stack, place.wakes) = (stack.clone(), place.wakes + 1.0),
            None => {
                if self.places.len() >= PLACES {
                    self.forget_rarest();
                }
                self.places.push(WokenPlace { stack: stack.clone(), wakes: 1.0, waits: 0.0 });
            }
        }
        if self.places.iter().map(|place| place.wakes).sum::<f32>() > MOST {
            self.last_waits /= 2.0;
            self.places.iter_mut().for_each(|place| {
                place.wakes /= 2.0;
                place.waits /= 2.0;
            });
        }
    }

    fn forget_rarest(&mut self) {
        let by_wakes = self.places.iter().enumerate().map(|(at, place)| (at, place.wakes));
        if let Some((rarest, _)) = by_wakes.min_by(|a, b| a.1.total_cmp(&b.1)) {
            self.places.swap_remove(rarest);
        }
    }

    /// A wait is shown there, where the thread was seen blocked before.
    pub fn waited(&mut self, stack: &Arc<RawStack>) {
        match self.places.iter_mut().find(|place| place.stack == *stack) {
            Some(place) => place.waits += 1.0,
            None => self.last_waits += 1.0,
        }
    }

    /// Where a wait is to be shown; `None`: where the thread was last seen blocked. In the long run
    /// places have waits as they have wakes.
    pub fn next(&mut self) -> Option<Arc<RawStack>> {
        let wakes = LAST + self.places.iter().map(|place| place.wakes).sum::<f32>();
        let waits = 1.0 + self.last_waits + self.places.iter().map(|place| place.waits).sum::<f32>();
        let owed = |place_wakes: f32, place_waits: f32| place_wakes / wakes * waits - place_waits;
        let of_last = owed(LAST, self.last_waits);
        let owes = |place: &WokenPlace| owed(place.wakes, place.waits);
        let most = self.places.iter_mut().max_by(|a, b| owes(a).total_cmp(&owes(b)));
        match most.filter(|place| owes(place) > of_last) {
            Some(place) => {
                place.waits += 1.0;
                Some(place.stack.clone())
            }
            None => {
                self.last_waits += 1.0;
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two stacks that are not equal.
    fn stacks() -> [Arc<RawStack>; 2] {
        [Arc::new(RawStack::none()), Arc::new(RawStack::not_begun())]
    }

    #[test]
    fn waits_are_where_wakes_are() {
        let [often, seldom] = stacks();
        let mut wakes = Wakes::default();
        assert!(wakes.next().is_none(), "no wake was seen");
        (0..21).for_each(|_| wakes.add(&often));
        (0..7).for_each(|_| wakes.add(&Arc::new((*seldom).clone())));
        let chosen: Vec<_> = (0..290).map(|_| wakes.next()).collect();
        let count = |stack: &RawStack| chosen.iter().flatten().filter(|chosen| ***chosen == *stack).count();
        assert!(count(&often).abs_diff(210) < 3 && count(&seldom).abs_diff(70) < 3);
        assert!(chosen.iter().filter(|chosen| chosen.is_none()).count().abs_diff(10) < 3);
    }

    #[test]
    fn what_was_long_ago_counts_less_and_places_are_few() {
        let [before, now] = stacks();
        let mut wakes = Wakes::default();
        (0..1000).for_each(|_| wakes.add(&before));
        (0..100).for_each(|_| wakes.add(&now));
        let chosen = (0..100).filter(|_| wakes.next().is_some_and(|chosen| chosen == now)).count();
        assert!(chosen > 80, "{chosen}");
        assert!(wakes.places.len() <= PLACES);
    }
}
