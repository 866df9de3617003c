//! Folded stacks, read back: `a;b;c 12`, a line each.

use super::{ReadError, Stacks};

pub(super) fn read(text: &str) -> Result<Stacks, ReadError> {
    let mut stacks = Stacks::default();
    for line in text.lines().map(str::trim_end).filter(|line| !line.is_empty() && !line.starts_with("# ")) {
        let unknown = || ReadError::Unknown(line.chars().take(60).collect());
        let (stack, count) = line.rsplit_once(' ').ok_or_else(unknown)?;
        let count: u64 = count.parse().map_err(|_| unknown())?;
        let sum = stacks.weights.entry(stack.split(';').map(str::to_owned).collect()).or_default();
        *sum = sum.saturating_add(count);
    }
    Ok(stacks)
}
