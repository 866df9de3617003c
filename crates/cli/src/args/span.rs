//! Times as people write them.

use std::time::Duration;

/// `10`, `2.5`, `500ms`, `10s`, `2m`, `1h`; without a unit it is seconds.
pub fn span(text: &str) -> Result<Duration, String> {
    let digits_end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits_end);
    let number: f64 = number.parse().map_err(|_| "write a number of seconds, or 500ms, 2m, 1h".to_owned())?;
    let scale = match unit.trim() {
        "" | "s" | "sec" => 1.0,
        "ms" => 1e-3,
        "us" | "µs" => 1e-6,
        "m" | "min" => 60.0,
        "h" | "hr" => 3600.0,
        other => return Err(format!("\"{other}\" is no unit of time; write 10, 10s, 500ms, 2m or 1h")),
    };
    Duration::try_from_secs_f64(number * scale).map_err(|_| format!("{text} is too long"))
}

/// The time that an agent is asked for at least.
pub const SHORTEST: Duration = Duration::from_millis(1);
/// An agent records at most so long at a time.
pub const LONGEST: Duration = Duration::from_secs(86_400);

/// How long a recording is.
pub fn recording_span(text: &str) -> Result<Duration, String> {
    let is_possible = |span: &Duration| !span.is_zero() && *span <= LONGEST;
    let wrong = || format!("{text} is out of range, which is more than 0 and at most 24h");
    span(text).and_then(|span| Some(span).filter(is_possible).ok_or_else(wrong))
}

/// How long a picture stays: a shorter one would have the samples of no kernel tick.
pub fn picture_span(text: &str) -> Result<Duration, String> {
    let is_possible = |span: &Duration| *span >= Duration::from_millis(100);
    span(text).and_then(|span| Some(span).filter(is_possible).ok_or_else(|| "at least 100ms".to_owned()))
}

/// Samples a second.
pub fn rate(text: &str) -> Result<u32, String> {
    let rate = text.parse().ok().filter(|rate| (1..=10_000).contains(rate));
    rate.ok_or_else(|| "write a number from 1 to 10000".to_owned())
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

    /// 0 was refused only after `swipr run` had run the program, and 25h not at all.
    #[test]
    fn what_no_agent_records_is_refused_on_the_command_line() {
        for wrong in ["0", "0ms", "25h", "86401", "-1"] {
            assert!(recording_span(wrong).is_err(), "{wrong}");
        }
        assert_eq!(recording_span("24h"), Ok(LONGEST));
        assert_eq!(picture_span("100ms"), Ok(Duration::from_millis(100)));
        assert!(picture_span("0").is_err() && picture_span("1ms").is_err());
        assert_eq!([rate("1"), rate("10000")], [Ok(1), Ok(10_000)]);
        for wrong in ["0", "10001", "-1", "foo"] {
            assert_eq!(rate(wrong), Err("write a number from 1 to 10000".to_owned()), "{wrong}");
        }
    }
}
