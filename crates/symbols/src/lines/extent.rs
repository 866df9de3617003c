//! The addresses of an entry: from one to another, or a list of ranges.

use crate::pages::PagedReader;
use gimli::{Attribute, AttributeValue, DwAt, RangeListsOffset, Reader, UnitRef};

/// Ranges of one entry that are looked at: many times what the largest units have.
const MAX_RANGES: usize = 1 << 18;

/// What the attributes that were noted say.
#[derive(Debug, Default)]
pub(super) struct Extent {
    low: Option<u64>,
    high: Option<u64>,
    size: Option<u64>,
    ranges: Option<RangeListsOffset>,
}

impl Extent {
    /// Whether an entry with this attribute has code.
    pub(super) fn begins_with(attribute: DwAt) -> bool {
        matches!(attribute, gimli::DW_AT_low_pc | gimli::DW_AT_ranges)
    }

    /// Takes an attribute in, whatever it was read from; whether it was one of these.
    pub(super) fn note<R>(&mut self, unit: UnitRef<PagedReader>, attribute: &Attribute<R>) -> bool
    where
        R: Reader<Offset = usize>,
    {
        match attribute.name() {
            gimli::DW_AT_low_pc => self.low = address(unit, &attribute.value()),
            gimli::DW_AT_high_pc => match attribute.value() {
                AttributeValue::Udata(size) => self.size = Some(size),
                value => self.high = address(unit, &value),
            },
            gimli::DW_AT_ranges => {
                self.ranges = match attribute.value() {
                    AttributeValue::RangeListsRef(offset) => Some(unit.ranges_offset_from_raw(offset)),
                    AttributeValue::DebugRngListsIndex(index) => unit.ranges_offset(index).ok(),
                    _ => None,
                }
            }
            _ => return false,
        }
        true
    }

    /// Calls back with the begin and end of each part; how many were looked at.
    pub(super) fn each(&self, unit: UnitRef<PagedReader>, mut found: impl FnMut(u64, u64)) -> usize {
        let mut looks = 1;
        let mut note = |begin: u64, end: u64| {
            if begin < end {
                found(begin, end);
            }
        };
        match (self.ranges, self.low) {
            (Some(ranges), _) => {
                let Ok(mut ranges) = unit.ranges(ranges) else { return looks };
                while let Ok(Some(range)) = ranges.next()
                    && looks < MAX_RANGES
                {
                    looks += 1;
                    note(range.begin, range.end);
                }
            }
            (None, Some(low)) => {
                // What the linker left out has an address at which this wraps.
                note(low, self.high.or(self.size.map(|size| low.wrapping_add(size))).unwrap_or(low));
            }
            (None, None) => {}
        }
        looks
    }

    /// Whether an address is in it; takes the parts that were looked at off what is `left`.
    pub(super) fn contains(&self, unit: UnitRef<PagedReader>, address: u64, left: &mut usize) -> bool {
        let mut is_in = false;
        let looks = self.each(unit, |begin, end| is_in |= begin <= address && address < end);
        *left = left.saturating_sub(looks);
        is_in
    }
}

fn address<R: Reader<Offset = usize>>(unit: UnitRef<PagedReader>, value: &AttributeValue<R>) -> Option<u64> {
    match value {
        AttributeValue::Addr(address) => Some(*address),
        AttributeValue::DebugAddrIndex(index) => unit.address(*index).ok(),
        _ => None,
    }
}
