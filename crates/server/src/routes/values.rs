//! Numbers and times as people write them. Nothing here rounds a wrong value to a
//! right one: what is out of range is refused with the range.

/// Nanoseconds in a second.
pub(crate) const SECOND_NS: u64 = 1_000_000_000;
/// Shortest time between two ticks.
pub(crate) const LEAST_INTERVAL_NS: u64 = 100_000;
/// Longest time between two ticks.
pub(crate) const MAX_INTERVAL_NS: u64 = 3600 * SECOND_NS;
/// Longest recording.
pub(crate) const MAX_DURATION_NS: u64 = 24 * 3600 * SECOND_NS;
/// Most ticks of a recording.
pub(crate) const MAX_TICKS: u64 = 10_000_000;

const UNITS: &[(&str, u64)] = &[
    ("", 1_000_000),
    ("ns", 1),
    ("us", 1_000),
    ("\u{b5}s", 1_000),
    ("\u{3bc}s", 1_000),
    ("ms", 1_000_000),
    ("s", SECOND_NS),
    ("min", 60 * SECOND_NS),
    ("h", 3600 * SECOND_NS),
    ("hr", 3600 * SECOND_NS),
];

/// A decimal number times `unit`, rounded down; `None` where it is negative or too
/// large for the answer.
fn scaled(number: &str, unit: u64) -> Result<Option<u64>, String> {
    let (negative, digits) = match number.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, number),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let all_digits = whole.bytes().chain(fraction.bytes());
    if digits.trim_matches('.').is_empty() || !all_digits.clone().all(|b| b.is_ascii_digit()) {
        return Err(format!("\"{number}\" is not a number"));
    }
    if negative && all_digits.clone().any(|b| b != b'0') {
        return Ok(None);
    }
    let mut value = 0u128;
    for digit in whole.bytes() {
        value = match value.checked_mul(10) {
            Some(value) if value <= u128::from(u64::MAX) => value + u128::from(digit - b'0'),
            _ => return Ok(None),
        };
    }
    let mut total = value * u128::from(unit);
    let mut place = u128::from(unit) * 1_000_000;
    let mut millionths = 0u128;
    for digit in fraction.bytes() {
        place /= 10;
        millionths += u128::from(digit - b'0') * place;
    }
    total += millionths / 1_000_000;
    Ok(u64::try_from(total).ok())
}

/// A time between two ticks: `10 ms`, `0.5s`, `2min`; without a unit milliseconds.
/// White space and letter case do not matter.
pub(crate) fn interval(text: &str) -> Result<u64, String> {
    let compact: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    let compact = compact.to_ascii_lowercase();
    let end = compact.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '-');
    let (number, unit) = compact.split_at(end.unwrap_or(compact.len()));
    let Some((_, unit_ns)) = UNITS.iter().find(|(name, _)| *name == unit) else {
        return Err(format!("\"{text}\" is not a time (units are h, min, s, ms, us, ns)"));
    };
    let time = scaled(number, *unit_ns).map_err(|_| format!("\"{text}\" is not a time"))?;
    in_interval_range(time).ok_or_else(|| format!("\"{text}\" is out of range, which is 100 us to 1 h"))
}

fn in_interval_range(time: Option<u64>) -> Option<u64> {
    time.filter(|ns| (LEAST_INTERVAL_NS..=MAX_INTERVAL_NS).contains(ns))
}

/// The time between ticks at that many a second.
pub(crate) fn interval_of_hertz(text: &str) -> Result<u64, String> {
    let nanohertz = scaled(text.trim(), SECOND_NS)?;
    let time = nanohertz.and_then(|rate| SECOND_NS.pow(2).checked_div(rate));
    in_interval_range(time)
        .ok_or_else(|| format!("\"{text}\" is out of range, which is 0.0003 to 10000 a second"))
}

/// A recording's length in units of so many nanoseconds.
pub(crate) fn duration(text: &str, unit: u64) -> Result<u64, String> {
    let time = scaled(text.trim(), unit)?;
    time.filter(|ns| (1..=MAX_DURATION_NS).contains(ns)).ok_or_else(|| {
        let most = MAX_DURATION_NS / unit;
        format!("\"{text}\" is out of range, which is more than 0 and at most {most} (24 h)")
    })
}

/// A whole number in a range.
pub(crate) fn count(text: &str, range: std::ops::RangeInclusive<u64>) -> Result<u64, String> {
    let trimmed = text.trim();
    let (whole, fraction) = trimmed.split_once('.').unwrap_or((trimmed, ""));
    let value = scaled(whole, 1)?;
    if !fraction.bytes().all(|b| b == b'0') {
        return Err(format!("\"{text}\" is not a whole number"));
    }
    value.filter(|value| range.contains(value)).ok_or_else(|| {
        let (least, most) = (range.start(), range.end());
        format!("\"{text}\" is out of range, which is {least} to {most}")
    })
}

/// One word of a list, by its letters whatever their case.
pub(crate) fn choice<T: Copy>(text: &str, values: &[(&str, T)]) -> Result<T, String> {
    let found = values.iter().find(|(name, _)| name.eq_ignore_ascii_case(text));
    found.map(|(_, value)| *value).ok_or_else(|| {
        let names: Vec<&str> = values.iter().map(|(name, _)| *name).collect();
        format!("\"{text}\" is not one of {}", names.join(", "))
    })
}

/// `true` or `false`, also as `1` and `0`.
pub(crate) fn switch(text: &str) -> Result<bool, String> {
    choice(text, &[("true", true), ("false", false), ("1", true), ("0", false)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_read_as_people_write_them() {
        for (text, nanoseconds) in [
            ("10 ms", 10_000_000),
            ("10", 10_000_000),
            (" 1 0 M S ", 10_000_000),
            ("0.5", 500_000),
            (".5s", 500_000_000),
            ("2.s", 2_000_000_000),
            ("100us", 100_000),
            ("250 \u{b5}s", 250_000),
            ("250 \u{3bc}s", 250_000),
            ("100000ns", 100_000),
            ("1.000001 ms", 1_000_001),
            ("1 min", 60_000_000_000),
            ("1h", 3_600_000_000_000),
            ("1 HR", 3_600_000_000_000),
            ("0.1234567891234567891234567 s", 123_456_789),
        ] {
            assert_eq!(interval(text), Ok(nanoseconds), "{text}");
        }
    }

    #[test]
    fn intervals_out_of_range_are_told_the_range() {
        for text in ["-1 ms", "0", "-0", "99us", "2 h", "3601s", "99999999999999999999999999999999h", "0.0"] {
            let error = interval(text).unwrap_err();
            assert!(error.contains("100 us to 1 h"), "{text}: {error}");
        }
        for text in ["", "ms", ".", "1.2.3ms", "1e3", "NaN", "inf", "5 fortnights", "--1", "1-1"] {
            let error = interval(text).unwrap_err();
            assert!(error.contains("is not a time"), "{text}: {error}");
        }
    }

    #[test]
    fn rates_become_intervals() {
        assert_eq!(interval_of_hertz("100"), Ok(10_000_000));
        assert_eq!(interval_of_hertz("0.5"), Ok(2_000_000_000));
        assert_eq!(interval_of_hertz("10000"), Ok(100_000));
        for text in ["0", "-1", "10001", "0.0002", "99999999999999999999999", "NaN", "", "x"] {
            assert!(interval_of_hertz(text).is_err(), "{text}");
        }
    }

    #[test]
    fn counts_are_whole_and_in_range() {
        assert_eq!(count("7", 1..=10), Ok(7));
        assert_eq!(count("7.0", 1..=10), Ok(7));
        for text in ["0", "11", "-1", "7.5", "", "x", "184467440737095516160"] {
            assert!(count(text, 1..=10).is_err(), "{text}");
        }
        assert_eq!(duration("1.5", SECOND_NS), Ok(1_500_000_000));
        for text in ["0", "-1", "86401", "", "1e9", "0.0000000001"] {
            assert!(duration(text, SECOND_NS).is_err(), "{text}");
        }
    }
}
