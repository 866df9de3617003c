//! Times as people write them.

use std::time::Duration;

/// `10`, `2.5`, `500ms`, `10s`, `2m`, `1h`; without a unit it is seconds.
pub fn span(text: &str) -> Result<Duration, String> {
    let digits_end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits_end);
    let scale = match unit.trim() {
        "" | "s" | "sec" => 1.0,
        "ms" => 1e-3,
        "us" | "µs" => 1e-6,
        "m" | "min" => 60.0,
        "h" | "hr" => 3600.0,
        other => return Err(format!("\"{other}\" is no unit of time; write 10, 10s, 500ms, 2m or 1h")),
    };
    let number: f64 = number.parse().map_err(|_| "write a number of seconds, or 500ms, 2m, 1h".to_owned())?;
    Duration::try_from_secs_f64(number * scale).map_err(|_| format!("{text} is too long"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_seconds_unless_they_say_otherwise() {
        for (text, ms) in [("10", 10_000), ("2.5", 2500), ("500ms", 500), ("2m", 120_000), ("1h", 3_600_000)]
        {
            assert_eq!(span(text), Ok(Duration::from_millis(ms)), "{text}");
        }
        for wrong in ["", "x", "-1", "5 parsecs", "1e99h", "..", "99999999999999999999999"] {
            assert!(span(wrong).is_err(), "{wrong}");
        }
    }
}
