//! Recordings that the configuration starts: `SWIPR_CONTINUOUS` and `SWIPR_OUTPUT`.

use std::path::PathBuf;
use std::time::Duration;
use swipr_formats::{FORMATS, FormatInfo};

/// What the flight recorder does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Continuous {
    /// Time between two ticks.
    pub interval: Duration,
    /// How much is kept.
    pub keep: Duration,
}

/// A value that is right.
pub const CONTINUOUS_EXAMPLE: &str = "49hz,60s";

impl Continuous {
    /// Reads `49hz,60s`, or `1` for just that; `0`: no flight recorder.
    pub fn parse(text: &str) -> Result<Option<Continuous>, String> {
        let text = match text.trim() {
            "0" => return Ok(None),
            "1" => CONTINUOUS_EXAMPLE,
            text => text,
        };
        let (rate, keep) = text.split_once(',').ok_or("it must be a rate and a time")?;
        let number = |text: &str, unit: &str| {
            let digits = text.trim().to_ascii_lowercase();
            digits.strip_suffix(unit).and_then(|digits| super::digits(digits.trim()))
        };
        let hz = number(rate, "hz")
            .filter(|hz| (1..=1000).contains(hz))
            .ok_or("the rate must be 1hz to 1000hz")?;
        let keep = number(keep, "s")
            .filter(|keep| (1..=3600).contains(keep))
            .ok_or("the time must be 1s to 3600s")?;
        let interval = Duration::from_nanos(1_000_000_000 / hz);
        Ok(Some(Continuous { interval, keep: Duration::from_secs(keep) }))
    }
}

/// A file that the whole life of the process is written into.
#[derive(Clone, Debug)]
pub struct LifeFile {
    pattern: String,
    /// As the name's end says.
    pub format: &'static FormatInfo,
}

impl PartialEq for LifeFile {
    fn eq(&self, other: &LifeFile) -> bool {
        // The format follows from it.
        self.pattern == other.pattern
    }
}

impl Eq for LifeFile {}

/// A value that is right.
pub const OUTPUT_EXAMPLE: &str = "/tmp/profile.%p.pb.gz";

impl LifeFile {
    /// Reads a path with `%p` in it, whose suffix is a format's. What is relative is so to the
    /// current directory.
    pub fn parse(text: &str) -> Result<LifeFile, String> {
        if !text.contains("%p") {
            return Err(
                "it must have %p, the process id, in it: children write files of their own".to_owned()
            );
        }
        let format = swipr_formats::of_file(text).ok_or_else(|| {
            let suffixes: Vec<&str> = FORMATS.iter().map(|format| format.suffix).collect();
            format!("its end must be one of {}", suffixes.join(", "))
        })?;
        let pattern = std::path::absolute(text).map_err(|error| error.to_string())?;
        let pattern = pattern.into_os_string().into_string().map_err(|_| "it must be UTF-8".to_owned())?;
        Ok(LifeFile { pattern, format })
    }

    /// The file of a process.
    pub fn path(&self, pid: u32) -> PathBuf {
        PathBuf::from(self.pattern.replace("%p", &pid.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_and_a_time_are_read() {
        let right = Continuous { interval: Duration::from_millis(20), keep: Duration::from_secs(60) };
        assert_eq!(Continuous::parse("50hz,60s"), Ok(Some(right)));
        assert_eq!(Continuous::parse(" 50 Hz , 60 s "), Ok(Some(right)));
        assert_eq!(Continuous::parse("1"), Continuous::parse(CONTINUOUS_EXAMPLE));
        assert_eq!(Continuous::parse("0"), Ok(None));
        for wrong in [
            "",
            "49hz",
            "60s,49hz",
            "0hz,60s",
            "2000hz,60s",
            "49hz,0s",
            "49hz,2h",
            "x,y",
            "49,60",
            "2",
            "+49hz,60s",
        ] {
            assert!(Continuous::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_files_suffix_is_its_format() {
        for (path, format) in [
            ("/tmp/profile.%p.pb.gz", "pprof"),
            ("%p.folded", "folded"),
            ("a-%p.firefox.json", "firefox"),
            ("a-%p.speedscope.json", "speedscope"),
            ("a-%p.dump.json", "json"),
            ("a-%p.json", "firefox"),
            ("%p/flame.html", "html"),
        ] {
            assert_eq!(LifeFile::parse(path).map(|file| file.format.name), Ok(format), "{path}");
        }
        assert_eq!(LifeFile::parse("/tmp/x.%p.svg").unwrap().path(77), PathBuf::from("/tmp/x.77.svg"));
        for wrong in ["profile.svg", "profile.%p", "profile.%p.gif"] {
            assert!(LifeFile::parse(wrong).is_err(), "{wrong}");
        }
    }
}
