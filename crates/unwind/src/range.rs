//! A range of addresses.

/// Addresses `low..high`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// First address.
    pub low: u64,
    /// The address behind the last.
    pub high: u64,
}
