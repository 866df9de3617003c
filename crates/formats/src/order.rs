//! Sorting, once for all types: the library is loaded into every process and has no room for a sort
//! for each.

use std::cmp::Ordering;

/// The numbers from 0 to `count`, in the order of `compare`; equal ones stay as they are.
pub(crate) fn order(count: usize, compare: &dyn Fn(usize, usize) -> Ordering) -> Vec<usize> {
    let mut numbers: Vec<usize> = (0..count).collect();
    numbers.sort_unstable_by(|&a, &b| compare(a, b).then(a.cmp(&b)));
    numbers
}

/// The values in the order of `compare`.
pub(crate) fn sorted<T: Clone>(values: &[T], compare: &dyn Fn(&T, &T) -> Ordering) -> Vec<T> {
    let by_number = |a: usize, b: usize| match (values.get(a), values.get(b)) {
        (Some(a), Some(b)) => compare(a, b),
        _ => Ordering::Equal,
    };
    order(values.len(), &by_number).into_iter().filter_map(|number| values.get(number).cloned()).collect()
}
