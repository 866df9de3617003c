//! Sorting by a number, once for all types: the library is loaded into every process and has no
//! room for a sort for each.

/// The values in the order of `key`; equal ones stay as they are.
pub fn sorted_by<T: Clone>(values: &[T], key: impl Fn(&T) -> u64) -> Vec<T> {
    let mut order: Vec<(u64, u32)> = values.iter().map(key).zip(0..).collect();
    order.sort_unstable();
    order.into_iter().filter_map(|(_, at)| values.get(at as usize).cloned()).collect()
}
