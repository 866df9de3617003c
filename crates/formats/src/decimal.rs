//! Decimal numbers with a few places. The standard library writes floating point numbers with any
//! number of places, which takes 12 KB of code.

use std::fmt;

/// So many units of 10 to the power of `-places`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decimal {
    units: u64,
    places: u32,
}

impl Decimal {
    /// 1500 units with 3 places are "1.500".
    pub fn new(units: u64, places: u32) -> Decimal {
        Decimal { units, places }
    }

    /// The nearest one. What is negative or not a number is 0.
    pub fn rounded(value: f64, places: u32) -> Decimal {
        Decimal { units: (value * 10_u64.pow(places) as f64 + 0.5) as u64, places }
    }

    /// Without zeros at its end: "1.5".
    pub fn trimmed(mut self) -> Decimal {
        while self.places > 0 && self.units.is_multiple_of(10) {
            self.units /= 10;
            self.places -= 1;
        }
        self
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let one = 10_u64.pow(self.places);
        write!(out, "{}", self.units / one)?;
        match self.places {
            0 => Ok(()),
            places => write!(out, ".{:0width$}", self.units % one, width = places as usize),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_with_all_their_places_or_with_those_that_are_needed() {
        let written = |value, places| Decimal::rounded(value, places).to_string();
        assert_eq!(["0.00", "12.35", "0.01"], [0.0, 12.346, 0.005_1].map(|value| written(value, 2)));
        assert_eq!(["7", "0", "0"], [6.5, -3.0, f64::NAN].map(|value| written(value, 0)));
        let trimmed = |units, places| Decimal::new(units, places).trimmed().to_string();
        assert_eq!(["1.5", "100", "0"], [trimmed(1500, 3), trimmed(100, 0), trimmed(0, 9)]);
        assert_eq!(Decimal::new(1_000_000_023, 9).to_string(), "1.000000023");
    }
}
